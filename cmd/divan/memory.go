package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// The collector lets the heap grow to what is live times (100+percent)/100.
// Caches and memtables are in Go's heap, so that its usual 100 would double
// them; but a small heap collected at a low percentage is collected all the
// time. So the percentage follows the live heap: up to heapGoal there is space
// to grow, beyond it only minPercent.
const (
	heapGoal   = 100 << 20 // bytes that the heap may have before a collection, however few of them are live
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

// paceCollector sets the pace of the garbage collector until ctx ends, unless
// GOGC does, and gives back what a burst or large bodies have left; garbage
// returns how many bytes of bodies that is since the last call. It gives back
// what was set before.
func paceCollector(ctx context.Context, garbage func() int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	now := gcPercent(0)
	before := debug.SetGCPercent(now)
	defer debug.SetGCPercent(before)
	var r release
	memory := newMemoryReader()
	tick := time.NewTicker(heapPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		m, ok := memory.read()
		if !ok {
			return
		}
		m.bodies = garbage()
		todo, bytes := r.next(m)
		switch todo {
		case collect:
			runtime.GC()
			tick.Reset(releasePeriod)
		case giveBack:
			giveBackPart(m.mapped, bytes)
		case enough:
			tick.Reset(heapPeriod)
		case nothing:
		}
		// Setting it stops the world for a moment: not for a small difference.
		if want := gcPercent(m.live); want < now-now/8 || want > now+now/8 {
			now = want
			debug.SetGCPercent(now)
		}
	}
}
