package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"divan/replicator/endpoint"
	"divan/storage/pause"
)

const (
	// maxBatch is how many changes are compared at once when nothing is missing.
	maxBatch = 8192
	// maxBatchBytes is about how much memory the changes of a batch take at most.
	maxBatchBytes = 4 << 20
	// idleBatch is how many changes a continuous feed is asked for when it has
	// had no more than it gave: what waits should be small.
	idleBatch = 16
	// fillTime is how long changes of a slow feed are gathered.
	fillTime = time.Second
	// reopenDelay keeps a continuous feed that ends at once from being opened
	// in a loop.
	reopenDelay = time.Second
	// lastCheckpoint is how long the checkpoint of a run that is told to end may
	// take.
	lastCheckpoint = 5 * time.Second
)

// copy copies the changes behind the start of the session.
func (r *run) copy(parent context.Context) error {
	ctx, fail := context.WithCancelCause(parent)
	defer fail(nil)
	p := pipeline{run: r, fail: fail, quit: make(chan struct{})}
	p.workers.SetLimit(r.Spec.Workers)
	if err := p.read(ctx); err != nil {
		fail(err)
	}
	_ = p.workers.Wait() // they tell by fail
	close(p.quit)
	p.checkpoints.Wait()
	err := context.Cause(ctx)
	switch {
	case err == nil:
		return r.finish(ctx)
	case parent.Err() != nil:
		last, cancel := context.WithTimeout(context.WithoutCancel(parent), lastCheckpoint)
		defer cancel()
		if err := r.finish(last); err != nil {
			r.log.Warn("no checkpoint at the end", zap.Error(err))
		}
	}
	return err
}

// finish writes the last checkpoint. Where nothing selects documents, a feed
// without a change has nothing to tell.
func (r *run) finish(ctx context.Context) error {
	f := &r.Spec.Filter
	through, news := r.done.reached()
	switch filtered := f.HasIDs || f.Selector != nil || f.Function != ""; {
	case !r.Spec.UseCheckpoints:
		return nil
	case !news && (r.answer != nil || !r.done.changed):
		return nil
	case !filtered && !r.done.changed:
		return nil
	}
	if err := r.checkpoint(ctx, through); err != nil {
		return err
	}
	r.done.commit(through)
	return nil
}

// pipeline is the work between reading changes and checkpoints.
type pipeline struct {
	*run
	fail        context.CancelCauseFunc
	workers     errgroup.Group // for its limit
	quit        chan struct{}  // closed: no checkpoints any more
	checkpoints sync.WaitGroup
}

// read takes changes from the source and gives them to workers, until the feed
// ends or ctx does. It waits while all workers are busy, which bounds what is in
// memory.
func (p *pipeline) read(ctx context.Context) error {
	for at := p.session.start; ; {
		feed, err := p.Source.Changes(ctx, endpoint.ChangesQuery{
			Since: at, Continuous: p.Spec.Continuous, Heartbeat: p.Spec.ConnectionTimeout / 3,
			Batch: p.Spec.BatchSize, WinnerOnly: p.Spec.WinnerOnly, Filter: p.Spec.Filter,
		})
		if err != nil {
			countIf(ctx, &p.Figures.FailedChanges, err)
			return fmt.Errorf("read the changes of the %s: %w", p.source.name, err)
		}
		err = p.drain(ctx, feed)
		last := feed.Last()
		feed.Close()
		if !errors.Is(err, io.EOF) {
			countIf(ctx, &p.Figures.FailedChanges, err)
			return fmt.Errorf("read the changes of the %s: %w", p.source.name, err)
		}
		if !p.Spec.Continuous {
			return nil
		}
		if last == at {
			if pause.For(ctx, reopenDelay) != nil {
				return context.Cause(ctx)
			}
		}
		at = last
	}
}

// drain reads a feed to its end, which is io.EOF.
func (p *pipeline) drain(ctx context.Context, feed endpoint.Feed) error {
	idle := p.Spec.Continuous
	for {
		size := int(p.size.Load())
		if idle {
			size = idleBatch
		}
		b := &batch{hold: p.Memory.Hold()}
		err := p.fill(ctx, feed, b, size)
		idle = p.Spec.Continuous && len(b.rows) < size
		if err != nil && !errors.Is(err, io.EOF) {
			b.hold.Release()
			return err
		}
		b.seq = feed.Last()
		p.pass(ctx, b)
		if err != nil {
			return err
		}
	}
}

// fill reads up to size changes, fewer large ones. A feed that waits for changes is asked only
// once; of one that does not, they are gathered for some time.
func (p *pipeline) fill(ctx context.Context, feed endpoint.Feed, b *batch, size int) error {
	rows := make([]endpoint.Change, size)
	var n, bytes int
	for began := time.Now(); n < size && bytes < maxBatchBytes; {
		more, err := feed.Next(ctx, rows[n:])
		before := bytes
		for i := range rows[n : n+more] {
			bytes += rows[n+i].Size()
		}
		n += more
		b.rows = rows[:n]
		if full := b.hold.Take(ctx, endpoint.MemoryFactor*int64(bytes-before)); full != nil {
			return endpoint.NoMemory("the changes of the "+p.source.name, full)
		}
		if err != nil || p.Spec.Continuous || time.Since(began) > fillTime {
			return err
		}
	}
	return nil
}

// pass gives a batch to a worker. One without changes moves the position only.
func (p *pipeline) pass(ctx context.Context, b *batch) {
	p.done.add(b)
	p.Progress.update(func(s *Stats) { s.SourceSeq = b.seq })
	if len(b.rows) == 0 {
		p.complete(ctx, b)
		return
	}
	p.workers.Go(func() error {
		if err := p.transfer(ctx, b.rows); err != nil {
			b.hold.Release()
			p.fail(err)
			return nil
		}
		p.complete(ctx, b)
		return nil
	})
}

// complete notes that a batch is done, and sees to it that a checkpoint will
// tell so.
func (p *pipeline) complete(ctx context.Context, b *batch) {
	through, begin := p.done.complete(b)
	p.Progress.update(func(s *Stats) { s.ThroughSeq, s.ChangesPending = through, p.done.pending() })
	if begin && p.Spec.UseCheckpoints {
		p.checkpoints.Go(func() {
			if err := p.remember(ctx); err != nil {
				p.fail(err)
			}
		})
	}
}

// remember writes a checkpoint each interval for as long as there is something
// new to tell.
func (p *pipeline) remember(ctx context.Context) error {
	for {
		select {
		case <-time.After(p.Spec.CheckpointInterval):
		case <-p.quit:
			return nil
		case <-ctx.Done():
			return nil
		}
		through, _ := p.done.reached()
		if err := p.checkpoint(ctx, through); err != nil {
			return err
		}
		if !p.done.commit(through) {
			return nil
		}
	}
}
