package window

import (
	"errors"
	"testing"
)

// budget is a memory.Holder of limit bytes; 0: without a bound.
type budget struct{ held, limit int }

var errFull = errors.New("full")

func (b *budget) Hold(n int) error {
	if b.limit > 0 && b.held+n > b.limit {
		return errFull
	}
	b.held += n
	return nil
}

func (b *budget) Drop(n int) { b.held -= n }

// read counts documents of one size, all of which have to have space.
func read(t *testing.T, w *Window, documents, bytes int) {
	t.Helper()
	if held, err := w.Hold(documents, func(int) int { return bytes / documents }); err != nil || held != documents {
		t.Errorf("%d of %d documents are held: %v", held, documents, err)
	}
}

// A window begins small, grows to as many documents as it may have, and goes by the size of
// those that were read; the last ones are counted.
func TestWindow(t *testing.T) {
	for _, most := range []int{256, 512, 4} {
		var space budget
		w := New(most, &space)
		if first := w.Size(); first != min(windowFirst, most) {
			t.Errorf("%d: begins with %d", most, first)
		}
		if held, err := w.Hold(0, nil); held != 0 || err != nil {
			t.Error(held, err)
		}
		for range 3 {
			read(t, &w, w.Size(), 0)
		}
		if got := w.Size(); got != most {
			t.Errorf("%d: up to %d", most, got)
		}
		if read(t, &w, 4, 8<<20); w.Size() > 2 {
			t.Errorf("%d: %d documents of 2 MB", most, w.Size())
		}
		if read(t, &w, 1, 8<<20); w.Size() != 1 {
			t.Errorf("%d: %d documents of 8 MB", most, w.Size())
		}
		if space.held != 8<<20 {
			t.Errorf("%d: %d bytes are counted of the last window", most, space.held)
		}
		if w.Close(); space.held != 0 {
			t.Errorf("%d: %d bytes are counted in the end", most, space.held)
		}
	}
}

// TestWindowWithoutSpace: where there is no space for a window the first documents are held and the
// next window is smaller; one document without space is refused.
func TestWindowWithoutSpace(t *testing.T) {
	space := budget{limit: 10 << 20}
	w := New(512, &space)
	eachOf := func(bytes int) func(int) int { return func(int) int { return bytes } }
	for _, c := range []struct{ documents, bytes, held, next int }{
		{16, 8_000_000, 1, 1}, {1, 8_000_000, 1, 1}, {8, 1 << 10, 8, 4}, {4, 1 << 10, 4, 16}, {16, 2 << 20, 4, 2},
	} {
		held, err := w.Hold(c.documents, eachOf(c.bytes))
		if err != nil || held != c.held || w.Size() != c.next {
			t.Errorf("%d of %d bytes: %d are held, then %d: %v", c.documents, c.bytes, held, w.Size(), err)
		}
		if got := space.held; got > c.held*c.bytes || got < c.held*c.bytes-16<<10 {
			t.Errorf("%d of %d bytes: %d are counted", c.documents, c.bytes, got)
		}
	}
	if held, err := w.Hold(3, eachOf(11<<20)); held != 0 || !errors.Is(err, errFull) {
		t.Errorf("a document without space: %d, %v", held, err)
	}
	if w.Close(); space.held != 0 {
		t.Errorf("%d bytes are left", space.held)
	}
}
