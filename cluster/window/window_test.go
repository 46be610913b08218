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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// A window begins small, grows to as many documents as it may have, and goes by the size of
// those that were read; the last ones are counted.
func TestWindow(t *testing.T) {
	for _, most := range []int{256, 512, 4} {
		var room budget
		w := New(most, &room)
		if first := w.Size(); first != min(windowFirst, most) {
			t.Errorf("%d: begins with %d", most, first)
		}
		must(t, w.Read(0, 0))
		for range 3 {
			must(t, w.Read(w.Size(), 0))
		}
		if got := w.Size(); got != most {
			t.Errorf("%d: up to %d", most, got)
		}
		if must(t, w.Read(4, 8<<20)); w.Size() > 2 {
			t.Errorf("%d: %d documents of 2 MB", most, w.Size())
		}
		if must(t, w.Read(1, 8<<20)); w.Size() != 1 {
			t.Errorf("%d: %d documents of 8 MB", most, w.Size())
		}
		if room.held != 8<<20 {
			t.Errorf("%d: %d bytes are counted of the last window", most, room.held)
		}
		if w.Close(); room.held != 0 {
			t.Errorf("%d: %d bytes are counted in the end", most, room.held)
		}
	}
}

// TestWindowWithoutRoom: where there is no room for a window the next one is smaller, and one document
// without room is refused.
func TestWindowWithoutRoom(t *testing.T) {
	room := budget{limit: 10 << 20}
	w := New(512, &room)
	for _, want := range []int{16, 1} { // 8 MB each
		if w.Size() != want {
			t.Fatalf("a window of %d documents, want %d", w.Size(), want)
		}
		must(t, w.Read(w.Size(), w.Size()*8_000_000))
	}
	must(t, w.Read(8, 8<<10)) // small ones
	must(t, w.Read(64, 64<<20))
	if w.Size() > 4 {
		t.Errorf("a window of %d documents", w.Size())
	}
	if err := w.Read(1, 11<<20); !errors.Is(err, errFull) {
		t.Errorf("one document without room: %v", err)
	}
	if w.Close(); room.held != 0 {
		t.Errorf("%d bytes are left", room.held)
	}
}
