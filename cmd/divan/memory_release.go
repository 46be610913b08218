package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The runtime keeps what a burst took for minutes, or for good where the next
// collection is far. After large bodies, and when little has been allocated for
// a while, it is collected and given back to the machine: a part at a time, as
// giving back stops the world, for 80 ms a GB on an idle machine.
const (
	reclaimed     = 64 << 20 // bytes of bodies that have to be garbage for a release at once
	releasePeriod = 20 * time.Millisecond
	quietBytes    = 1 << 20  // allocated in a period, at most, for it to be quiet
	quietPeriods  = 8        // of heapPeriod, before a release
	worthBytes    = 16 << 20 // unused, at least, and an eighth of what is used, for a release
	slackBytes    = 4 << 20  // left to the heap after a release, and a sixteenth of what is used
	partBytes     = 64 << 20 // given back at once, at most
	stillPeriods  = 4        // of releasePeriod, without anything given back, that end a release
)

// memory holds the runtime's figures about its memory, in bytes.
type memory struct {
	live      uint64 // in the heap after the last collection
	used      uint64 // by objects, living or dead
	free      uint64 // held for later objects
	mapped    uint64 // had from the machine, all in all
	allocated uint64 // since the start
	bodies    int64  // of large bodies that became garbage since the last reading
}

// memoryReader reads memory; its samples are used again.
type memoryReader []metrics.Sample

func newMemoryReader() memoryReader {
	var r memoryReader
	for _, name := range []string{
		"/gc/heap/live:bytes", "/memory/classes/heap/objects:bytes", "/memory/classes/heap/free:bytes",
		"/memory/classes/total:bytes", "/memory/classes/heap/released:bytes", "/gc/heap/allocs:bytes",
	} {
		r = append(r, metrics.Sample{Name: name})
	}
	return r
}

// read returns false if the runtime does not know one of the figures.
func (r memoryReader) read() (memory, bool) {
	metrics.Read(r)
	for i := range r {
		if r[i].Value.Kind() != metrics.KindUint64 {
			return memory{}, false
		}
	}
	v := func(i int) uint64 { return r[i].Value.Uint64() }
	return memory{live: v(0), used: v(1), free: v(2), mapped: v(3) - min(v(3), v(4)), allocated: v(5)}, true
}

// action is a step that release asks for.
type action int

const (
	nothing  action = iota
	collect         // the garbage
	giveBack        // a part of what is free
	enough          // the end of a release
)

// release decides when memory is given back. The zero value is ready.
type release struct {
	allocated uint64 // as last read
	bodies    int64  // that are garbage
	quiet     int    // periods, one after the other
	left      uint64 // unused at the end of the last release
	on        bool
	mapped    uint64 // least in this release
	still     int    // periods since it was reached
}

// next returns what is to be done, given what the runtime says now, and how many
// bytes to give back.
func (r *release) next(m memory) (action, uint64) {
	fresh := m.allocated - r.allocated
	r.allocated = m.allocated
	r.bodies += m.bodies
	unused := m.free + m.used - min(m.used, m.live)
	if r.on {
		return r.goOn(m, unused)
	}
	if fresh <= quietBytes {
		r.quiet++
	} else {
		r.quiet = 0
	}
	switch {
	case m.bodies > 0: // more is coming: a collection costs a whole round
		return nothing, 0
	case r.bodies >= reclaimed:
	case r.quiet >= quietPeriods && unused >= r.left+max(worthBytes, m.used/8):
	default:
		r.bodies = 0
		return nothing, 0
	}
	*r = release{allocated: m.allocated, on: true, mapped: m.mapped}
	return collect, 0
}

// goOn returns what a release that is on does next.
func (r *release) goOn(m memory, unused uint64) (action, uint64) {
	if m.mapped < r.mapped {
		r.mapped, r.still = m.mapped, 0
	} else {
		r.still++
	}
	if slack := slackBytes + m.used/16; m.free > slack && r.still <= stillPeriods {
		return giveBack, min(partBytes, max((m.free-slack)/4, slackBytes/4))
	}
	*r = release{allocated: m.allocated, left: unused}
	return enough, 0
}

// giveBackPart gives n unused bytes back to the machine, or as many as there are. The
// runtime does so when it allocates beyond its limit; the goal of the collector stays out
// of reach as long as n is less than half of what is free.
func giveBackPart(mapped, n uint64) {
	limit := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(limit, int64(mapped-min(mapped, n))))
	runtime.KeepAlive(make([]byte, 128<<10)) // more than small sizes have: it gets pages of its own
	debug.SetMemoryLimit(limit)
}
