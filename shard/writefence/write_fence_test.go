package writefence

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// drain is a call of Drain.
type drain struct {
	abort context.CancelFunc
	err   error // once it is over
	over  atomic.Bool
}

// startDrain calls Drain and lets it look at what there is.
func startDrain(ctx context.Context, f *Fence) *drain {
	ctx, abort := context.WithCancel(ctx)
	d := &drain{abort: abort}
	go func() {
		d.err = f.Drain(ctx)
		d.over.Store(true)
	}()
	look()
	return d
}

// look lets all Drains look at what there is, also those that wait for each other.
func look() {
	<-time.After(100 * lastPoll) // of the bubble
	synctest.Wait()
}

// wait fails unless the Drain is under way.
func (d *drain) wait(t *testing.T, why string) {
	t.Helper()
	if look(); d.over.Load() {
		t.Fatalf("it ended, %v: %s", d.err, why)
	}
}

// end fails unless the Drain has ended with an error.
func (d *drain) end(t *testing.T, want error, why string) {
	t.Helper()
	if look(); !d.over.Load() || !errors.Is(d.err, want) {
		t.Fatalf("over: %t, %v: %s", d.over.Load(), d.err, why)
	}
}

// TestDrain: it waits for the writes that began before it, and for no others.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Fence
		began := time.Now()
		if err := f.Drain(t.Context()); err != nil || !time.Now().Equal(began) {
			t.Fatalf("without writes: %v after %v", err, time.Since(began))
		}
		f.End(f.Begin())
		for range 5 { // in either epoch
			one, two := f.Begin(), f.Begin()
			d := startDrain(t.Context(), &f)
			d.wait(t, "two are under way")
			later := f.Begin()
			f.End(one)
			d.wait(t, "one is under way")
			f.End(two)
			d.end(t, nil, "only a later one is under way")
			d = startDrain(t.Context(), &f)
			d.wait(t, "the later one is an earlier one of this")
			f.End(later)
			d.end(t, nil, "none is under way")
		}
	})
}

// TestDrainAborted: a Drain ends with its context, no matter which writes it waits
// for, and the Drains after it wait for the writes that it should have waited for.
func TestDrainAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, oldFirst := range []bool{true, false} {
			var f Fence
			old := f.Begin()
			d := startDrain(t.Context(), &f)
			d.abort()
			d.end(t, context.Canceled, "the write is under way")
			between := f.Begin()
			first, second := startDrain(t.Context(), &f), startDrain(t.Context(), &f)
			second.abort()
			second.end(t, context.Canceled, "another one is under way")
			for range 2 {
				first.wait(t, "both are under way")
				first.abort()
				first.end(t, context.Canceled, "both are under way")
				first = startDrain(t.Context(), &f)
			}
			if oldFirst {
				f.End(old)
				first.wait(t, "the one in between is under way")
				later := f.Begin()
				f.End(between)
				first.end(t, nil, "only a later one is under way")
				f.End(later)
			} else {
				f.End(between)
				first.wait(t, "the old one is under way")
				f.End(old)
				first.end(t, nil, "none is under way")
			}
			if err := f.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestFenceRapid: when writes and Drains begin, end and are aborted in any order, no
// Drain ends before all earlier writes have, all end when nothing is under way, and a
// Drain that never had another beside it, or before it, ends with the last of its
// writes.
func TestFenceRapid(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) fenceStep {
			return fenceStep{
				rapid.SampledFrom([]string{"begin", "begin", "end", "end", "drain", "abort"}).Draw(r, "what"), rapid.IntRange(0, 1000).Draw(r, "which"),
			}
		}), 20, 60).Draw(r, "steps")
		var h fenceHistory
		synctest.Test(t, func(t *testing.T) { h.run(t.Context(), steps) })
		if h.problem != "" {
			r.Fatal(h.problem)
		}
	})
}

// fenceStep is something that happens to a fence, to one of those that it may happen to.
type fenceStep struct {
	what  string
	which int
}

// fenceHistory is what has happened to a fence.
type fenceHistory struct {
	fence   Fence
	writes  int
	open    []openWrite
	running []runningDrain
	aborted bool   // a Drain was, and not all writes of before have ended
	problem string // the first that was found
}

type openWrite struct {
	epoch uint32
	n     int
}

type runningDrain struct {
	*drain
	upto  int  // of the writes: they began before it
	alone bool // it need not wait for what another one has left
}

func (h *fenceHistory) run(ctx context.Context, steps []fenceStep) {
	for _, s := range steps {
		h.step(ctx, s)
		h.check()
	}
	for _, w := range h.open {
		h.fence.End(w.epoch)
	}
	h.open = nil
	h.check()
}

func (h *fenceHistory) step(ctx context.Context, s fenceStep) {
	switch {
	case s.what == "begin":
		h.writes++
		h.open = append(h.open, openWrite{h.fence.Begin(), h.writes})
	case s.what == "end" && len(h.open) > 0:
		at := s.which % len(h.open)
		h.fence.End(h.open[at].epoch)
		h.open = slices.Delete(h.open, at, at+1)
		h.aborted = h.aborted && len(h.open) > 0
	case s.what == "drain":
		alone := len(h.running) == 0 && !h.aborted
		for i := range h.running {
			h.running[i].alone = false
		}
		h.running = append(h.running, runningDrain{startDrain(ctx, &h.fence), h.writes, alone})
	case s.what == "abort" && len(h.running) > 0:
		at := s.which % len(h.running)
		d := h.running[at]
		h.running = slices.Delete(h.running, at, at+1)
		h.aborted = len(h.open) > 0
		d.abort()
		if look(); !d.over.Load() || !errors.Is(d.err, context.Canceled) {
			h.fail("aborted: over %t, %v", d.over.Load(), d.err)
		}
	}
}

func (h *fenceHistory) check() {
	look()
	h.running = slices.DeleteFunc(h.running, func(d runningDrain) bool {
		waits := slices.ContainsFunc(h.open, func(w openWrite) bool { return w.n <= d.upto })
		over := d.over.Load()
		switch {
		case over && (d.err != nil || waits):
			h.fail("over with %v while a write of before is under way: %t", d.err, waits)
		case !over && (len(h.open) == 0 || d.alone && !waits):
			h.fail("it waits for nothing, %d writes are under way", len(h.open))
		}
		return over
	})
}

func (h *fenceHistory) fail(format string, args ...any) {
	if h.problem == "" {
		h.problem = fmt.Sprintf(format, args...)
	}
}

// TestFenceRace has many write and drain at once.
func TestFenceRace(t *testing.T) {
	const writers, drainers, rounds = 8, 3, 50
	var f Fence
	var begun, ended [writers]atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var writing, draining sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for ctx.Err() == nil {
				epoch := f.Begin()
				begun[w].Add(1)
				runtime.Gosched() // lets others run while it is under way
				ended[w].Add(1)
				f.End(epoch)
			}
		})
	}
	for range drainers {
		draining.Go(func() {
			for i := range rounds {
				var before [writers]int64
				for w := range writers {
					before[w] = begun[w].Load()
				}
				ctx, abort := context.WithCancel(t.Context())
				if i%4 == 0 {
					abort() // it may have come to its end all the same
				}
				err := f.Drain(ctx)
				abort()
				for w := range writers {
					if err == nil && ended[w].Load() < before[w] {
						t.Errorf("a write of before is under way")
					}
				}
			}
		})
	}
	draining.Wait()
	stop()
	writing.Wait()
	if err := f.Drain(t.Context()); err != nil || f.writing[0].Load() != 0 || f.writing[1].Load() != 0 {
		t.Errorf("in the end: %v", err)
	}
}

// TestDrainsShare: those that wait for one that is under way do not do it one after the
// other: one does it for all.
func TestDrainsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Fence
		first := f.Begin()
		one := startDrain(t.Context(), &f)
		look()
		second := f.Begin()
		var others []*drain
		for range 20 {
			others = append(others, startDrain(t.Context(), &f))
		}
		look()
		f.End(first)
		one.end(t, nil, "the first write has ended")
		look()
		third := f.Begin()
		f.End(second)
		for _, d := range others {
			d.end(t, nil, "the second has, and the third began later")
		}
		f.End(third)
		if got := f.begun.Load(); got != 2 {
			t.Errorf("%d were done", got)
		}
	})
}
