package instance

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// reservations notes what a log asks its file system for.
type reservations struct {
	vfs.File
	calls []string
	end   int64
}

// Preallocate implements vfs.File.
func (r *reservations) Preallocate(offset, length int64) error {
	r.calls = append(r.calls, fmt.Sprintf("%d+%d", offset>>10, length>>10))
	if offset != r.end {
		return fmt.Errorf("gap at %d", r.end)
	}
	r.end = offset + length
	return nil
}

// TestLogGrowsInSteps: a log takes little disk until it holds much.
func TestLogGrowsInSteps(t *testing.T) {
	file, err := vfs.NewMem().Create("x.log", vfs.WriteCategoryUnspecified)
	must(t, err)
	r := &reservations{File: file}
	f := &logFile{File: r, i: &Instance{}}
	must(t, f.Preallocate(0, 64<<20))
	block := make([]byte, 32<<10)
	for range 128 { // 4 MB
		_, err := f.Write(block)
		must(t, err)
		if r.end < f.written || r.end > 2*f.written+minLogStep {
			t.Fatalf("%d bytes reserved for %d", r.end, f.written)
		}
	}
	if n := len(r.calls); n > 12 {
		t.Errorf("%d calls for 4 MB: %v", n, r.calls)
	}
	_, err = f.Write(make([]byte, 3<<20))
	must(t, err)
	if r.end < f.written {
		t.Errorf("a large write is not covered: %d of %d", r.end, f.written)
	}
	must(t, f.Close())
}
