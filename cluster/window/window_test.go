package window

import (
	"errors"
	"testing"

	"divan/cluster/config"
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

// However small the documents of a window are, those of the next one may be as
// large as the database takes.
func TestWindow(t *testing.T) {
	for _, tc := range []struct {
		maxDocument int64
		most        int
		want        int
	}{
		{1, 256, 256}, {1 << 20, 256, 250}, {1 << 20, 512, 250}, {8_000_000, 512, 32}, {100 << 20, 512, 16}, {config.Infinity, 512, 16}, {1, 4, 4},
	} {
		var room budget
		w := New(tc.maxDocument, tc.most, &room)
		if first := w.Size(); first != min(windowFirst, tc.most) {
			t.Errorf("%+v: begins with %d", tc, first)
		}
		must(t, w.Read(0, 0))
		for range 2 {
			must(t, w.Read(w.Size(), 0))
		}
		if got := w.Size(); got != tc.want {
			t.Errorf("%+v: up to %d", tc, got)
		}
		if must(t, w.Read(4, 8<<20)); w.Size() > 2 {
			t.Errorf("%+v: %d documents of 2 MB", tc, w.Size())
		}
		if must(t, w.Read(1, 8<<20)); w.Size() != 1 {
			t.Errorf("%+v: %d documents of 8 MB", tc, w.Size())
		}
		if room.held != 8<<20 {
			t.Errorf("%+v: %d bytes are counted of the last window", tc, room.held)
		}
		if w.Close(); room.held != 0 {
			t.Errorf("%+v: %d bytes are counted in the end", tc, room.held)
		}
	}
}

// TestWindowWithoutRoom: where there is no room for a window the next one is smaller, and one document
// without room is refused.
func TestWindowWithoutRoom(t *testing.T) {
	room := budget{limit: 10 << 20}
	w := New(8_000_000, 512, &room)
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
