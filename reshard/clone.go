package reshard

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/shard"
	"divan/shard/ring"
)

func (w *work) cloneOptions(db *meta.Database, j *job.Job, r ring.Range) shard.CloneOptions {
	return shard.CloneOptions{Source: j.Name(), Target: db.CopyName(r), Range: r, Partitioned: db.Partitioned, Pace: w.r.limit.Wait}
}

// cloneAll clones all targets at once: each reads the same source, which is in the cache
// then. An error of one leaves the others alone: what they have done stays.
//
// When the map has changed so that there is nothing to do it does nothing: that is seen next.
func (w *work) cloneAll(ctx context.Context, db *meta.Database, j *job.Job, ranges []ring.Range) error {
	var group errgroup.Group
	p := progress{report: w.task.progress, done: make([]uint64, len(ranges)), total: make([]uint64, len(ranges))}
	for i, r := range ranges {
		group.Go(func() error {
			o := w.cloneOptions(db, j, r)
			if there, err := w.made(ctx, j, o.Target); err != nil || !there {
				return err
			}
			o.Progress = func(done, total uint64) { p.note(i, done, total) }
			_, err := w.r.o.Clones.Range(ctx, o)
			return err
		})
	}
	return group.Wait()
}

// progress adds up what several clones have done.
type progress struct {
	report func(done, total uint64)

	mu          sync.Mutex
	done, total []uint64 // by clone
}

func (p *progress) note(i int, done, total uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i], p.total[i] = done, total
	done, total = 0, 0
	for k := range p.done {
		done += p.done[k]
		total += p.total[k]
	}
	p.report(done, total)
}
