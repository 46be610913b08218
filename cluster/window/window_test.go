package window

import (
	"testing"

	"divan/cluster/config"
)

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
		w := New(tc.maxDocument, tc.most)
		if first := w.Size(); first != min(windowFirst, tc.most) {
			t.Errorf("%+v: begins with %d", tc, first)
		}
		w.Read(0, 0)
		for range 2 {
			w.Read(w.Size(), 0)
		}
		if got := w.Size(); got != tc.want {
			t.Errorf("%+v: up to %d", tc, got)
		}
		if w.Read(4, 8<<20); w.Size() > 2 {
			t.Errorf("%+v: %d documents of 2 MB", tc, w.Size())
		}
		if w.Read(1, 8<<20); w.Size() != 1 {
			t.Errorf("%+v: %d documents of 8 MB", tc, w.Size())
		}
	}
}
