package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// whole reports what is missing of a budget that is not in use.
func (b *budget) whole() error {
	if !b.space.TryAcquire(b.size) {
		return errors.New("bytes were not given back")
	}
	b.space.Release(b.size)
	if !b.overdraft.TryAcquire(1) {
		return errors.New("an update may still go beyond the budget")
	}
	b.overdraft.Release(1)
	if n, over := b.updates.Load(), b.beyond.Load(); n != 0 || over != 0 {
		return fmt.Errorf("%d updates run, %d bytes are taken beyond the budget", n, over)
	}
	return nil
}

// For any results of documents, all updates of a node together hold the budget and
// one document at most, each of them ends, and everything is given back, also by
// those that are cancelled.
func TestBudget(t *testing.T) {
	n := start(t)
	const docs = 700
	n.write(0, docs, 1, false)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		size := int64(rapid.IntRange(24, 64).Draw(rt, "budget")) << 20
		largest := rapid.SampledFrom([]int{100, 100 << 10, 3 << 20, 100 << 20}).Draw(rt, "largest")
		huge := rapid.IntRange(1, 100).Draw(rt, "percent of large ones")
		seed := rapid.Uint64().Draw(rt, "seed")
		updates := rapid.IntRange(1, 6).Draw(rt, "updates")
		cancelled := rapid.Bool().Draw(rt, "cancelled")
		n.m.budget = newBudget(size)
		var held, most atomic.Int64
		var running sync.WaitGroup
		for u := range updates {
			rng := rand.New(rand.NewPCG(seed, uint64(u)))
			weights := map[string]int{}
			for i := range docs {
				weights[fmt.Sprintf("d%05d", i)] = 1 + rng.IntN(100)
				if rng.IntN(100) < huge {
					weights[fmt.Sprintf("d%05d", i)] = 1 + rng.IntN(largest)
				}
			}
			kind := &revisions{weigh: func(d Doc) int { return weights[d.ID] }}
			var own atomic.Int64
			kind.took = func(bytes int) {
				own.Add(int64(bytes))
				now := held.Add(int64(bytes))
				for old := most.Load(); old < now && !most.CompareAndSwap(old, now); old = most.Load() {
				}
			}
			kind.closed = func(bytes int) { own.Add(-int64(bytes)); held.Add(-int64(bytes)) }
			kind.onBegin = func() { held.Add(-own.Swap(0)) } // what an update before has left
			stop, fails := math.MaxInt64, rng.IntN(2) == 0
			if cancelled {
				stop = 1 + rng.IntN(docs)
			}
			spec := n.spec()
			spec.Signature = fmt.Sprintf("%016x%016x", round, u)
			spec.Open = func(context.Context) (Kind, bool, error) { return kind, false, nil }
			if rng.IntN(2) == 0 {
				spec.Open = func(context.Context) (Kind, bool, error) { return &gathering{revisions: kind}, false, nil }
			}
			mapped := atomic.Int64{}
			kind.fail = func(Doc) error {
				switch {
				case mapped.Add(1) != int64(stop):
				case fails:
					return errors.New("no way")
				default:
					n.m.followers.mu.Lock()
					n.m.followers.mu.byKey[copyName+"\x00"+spec.Signature].cancelWork()
					n.m.followers.mu.Unlock()
				}
				return nil
			}
			running.Go(func() {
				use, err := n.m.Acquire(t.Context(), copyName, spec)
				if err != nil {
					rt.Error(err)
					return
				}
				defer use.Release()
				if err := use.Update(t.Context()); (err != nil) != (cancelled && fails) {
					rt.Errorf("an update ended with %v", err)
				}
				held.Add(-own.Swap(0))
			})
		}
		running.Wait()
		// An update that was cancelled is counted until this test hears of it, when
		// another one may have its memory already.
		if limit := size + int64(largest); !cancelled && most.Load() > limit {
			rt.Fatalf("%d bytes were held, the budget is %d, the largest document %d", most.Load(), size, largest)
		}
		must(t, n.m.Cleanup(t.Context(), copyName, View, nil))
		if err := n.m.budget.whole(); err != nil {
			rt.Fatal(err)
		}
	})
}
