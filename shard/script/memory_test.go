package script

import (
	"fmt"
	"runtime/debug"
	"testing"
	"time"
)

// settled is the resident memory of the process without what Go could give back.
func settled(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	return resident(t)
}

// TestMemoryIsGivenBack has functions take blocks of many sizes. What a VM had is the
// machine's again when it is closed, and large blocks when it has nothing to do.
func TestMemoryIsGivenBack(t *testing.T) {
	if testing.Short() {
		t.Skip("the memory of the race detector is none of the program's")
	}
	const source = `{"filters":{"f":"function (doc) { var kept = []; for (var mb = 1.5; mb < %d; mb *= 2) { kept.push('x'.repeat(mb * 1024 * 1024)); } return kept.length > 0; }"}}`
	const slack = 12 << 20 // bytes
	use := func(e *Engine, n int, mb int) {
		t.Helper()
		d := e.Design(fmt.Sprint(n, mb), fmt.Appendf(nil, source, mb))
		if got, err := d.Filter(t.Context(), "f", [][]byte{fmt.Appendf(nil, `{"n":%d}`, n)}, nil); err != nil || !got[0] {
			t.Fatal(got, err)
		}
	}
	warm := newEngine(t, Options{MaxVMs: 7, Timeout: func() time.Duration { return time.Minute }})
	use(warm, 0, 2)
	before := settled(t)
	for n := range 3 {
		use(warm, n, 14)
		if s := warm.Stats(); s.Idle == 0 {
			t.Fatalf("no VM is kept: %+v", s)
		}
	}
	if grown := settled(t) - before; grown > slack {
		t.Errorf("idle VMs keep %d MB", grown>>20)
	}
	for n := range 3 {
		use(warm, n, 28)
	}
	if err := warm.Close(); err != nil {
		t.Fatal(err)
	}
	if grown := settled(t) - before; grown > slack {
		t.Errorf("closed VMs leave %d MB", grown>>20)
	}
}
