package main

import (
	"runtime"
	"testing"
)

func TestGCPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, maxPercent}, {10 << 20, maxPercent}, {50 << 20, 100}, {heapGoal, minPercent}, {10 << 30, minPercent},
	} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("gcPercent(%d) = %d, want %d", c.live, got, c.want)
		}
	}
}

// A burst leaves garbage and free memory: it is collected once it is quiet, given
// back in parts, and left alone until there is as much again.
func TestReleaseAfterBurst(t *testing.T) {
	var r release
	m := memory{live: 40 << 20, used: 80 << 20, free: 30 << 20, mapped: 160 << 20}
	for i := range 20 { // busy
		m.allocated += 10 << 20
		if todo, _ := r.next(m); todo != nothing {
			t.Fatalf("busy, period %d: %v", i, todo)
		}
	}
	for i := 1; ; i++ {
		todo, _ := r.next(m)
		if todo == collect && i == quietPeriods {
			break
		}
		if todo != nothing || i > quietPeriods {
			t.Fatalf("quiet, period %d: %v", i, todo)
		}
	}
	m.used, m.free = m.live, m.free+m.used-m.live
	for range 1000 {
		todo, n := r.next(m)
		if todo == enough {
			break
		}
		if todo != giveBack || n == 0 || n > partBytes || n > m.free/2 {
			t.Fatalf("%v %d of %d", todo, n, m.free)
		}
		m.free, m.mapped = m.free-n, m.mapped-n
	}
	if m.free > slackBytes+m.used/16 {
		t.Errorf("%d bytes left", m.free)
	}
	for i := range 100 {
		if todo, _ := r.next(m); todo != nothing {
			t.Fatalf("after the release, period %d: %v", i, todo)
		}
	}
}

// A runtime that gives nothing back is not asked for ever.
func TestReleaseEnds(t *testing.T) {
	r := release{on: true, mapped: 160 << 20}
	m := memory{live: 40 << 20, used: 40 << 20, free: 100 << 20, mapped: 160 << 20}
	for i := 0; ; i++ {
		todo, _ := r.next(m)
		if todo == enough {
			break
		}
		if i > 2*stillPeriods {
			t.Fatal("it goes on")
		}
	}
	for range 100 {
		if todo, _ := r.next(m); todo != nothing {
			t.Fatalf("it begins again: %v", todo)
		}
	}
}

// Large bodies are collected as soon as no more of them come, no matter what else goes on.
func TestReleaseAfterBodies(t *testing.T) {
	var r release
	m := memory{live: 40 << 20, used: 40 << 20, mapped: 100 << 20}
	next := func(bodies int64) action {
		m.bodies = bodies
		m.allocated += 50 << 20
		todo, _ := r.next(m)
		return todo
	}
	for _, bodies := range []int64{reclaimed / 2, reclaimed / 2, 0} {
		want := nothing
		if bodies == 0 {
			want = collect
		}
		if todo := next(bodies); todo != want {
			t.Errorf("%d bytes: %v, want %v", bodies, todo, want)
		}
	}
	r = release{allocated: m.allocated}
	if next(reclaimed-1) != nothing || next(0) != nothing || r.bodies != 0 {
		t.Error("few bytes are worth a collection")
	}
}

// The runtime does give back what it is asked for.
func TestGiveBackPart(t *testing.T) {
	func() {
		large := make([]byte, 200<<20)
		for i := 0; i < len(large); i += 4096 {
			large[i] = 1
		}
		runtime.KeepAlive(large)
	}()
	runtime.GC()
	reader := newMemoryReader()
	before, ok := reader.read()
	if !ok || before.free < 150<<20 {
		t.Fatalf("nothing is free: %+v", before)
	}
	giveBackPart(before.mapped, 50<<20)
	after, _ := reader.read()
	if after.mapped+40<<20 > before.mapped || after.mapped+80<<20 < before.mapped {
		t.Errorf("had %d MB, has %d MB, want 50 less", before.mapped>>20, after.mapped>>20)
	}
}
