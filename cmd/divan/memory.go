package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The collector lets the heap grow to what is live times (100+percent)/100.
// Caches and memtables are in Go's heap, so that its usual 100 would double
// them; but a small heap collected at a low percentage is collected all the
// time. So the percentage follows the live heap: up to heapGoal there is room
// to grow, beyond it only minPercent.
const (
	heapGoal   = 100 << 20 // bytes that the heap may have before a collection, whatever is live
	minPercent = 35
	maxPercent = 200
	heapPeriod = 500 * time.Millisecond
)

// gcPercent returns the percentage for so many live bytes.
func gcPercent(live uint64) int {
	if live == 0 {
		return maxPercent
	}
	return int(min(max(heapGoal*100/live, 100+minPercent), 100+maxPercent)) - 100
}

// reclaimed is how many bytes of bodies have to be garbage for the memory to be
// given back to the machine at once. The runtime takes minutes.
const reclaimed = 64 << 20

// paceCollector sets the pace of the garbage collector until ctx ends, unless
// GOGC does, and collects what large bodies have left; garbage returns how many
// bytes that is since the last call. It gives back what was set before.
func paceCollector(ctx context.Context, garbage func() int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	left := int64(0)
	now := gcPercent(0)
	before := debug.SetGCPercent(now)
	defer debug.SetGCPercent(before)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(heapPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Not while more is coming: it costs a whole collection.
		switch more := garbage(); {
		case more > 0:
			left += more
		case left >= reclaimed:
			debug.FreeOSMemory()
			left = 0
		default:
			left = 0
		}
		metrics.Read(live)
		if live[0].Value.Kind() != metrics.KindUint64 {
			return
		}
		// Setting it stops the world for a moment: not for a small difference.
		if want := gcPercent(live[0].Value.Uint64()); want < now-now/8 || want > now+now/8 {
			now = want
			debug.SetGCPercent(now)
		}
	}
}
