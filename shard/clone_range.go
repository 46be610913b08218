package shard

import (
	"context"
	"fmt"

	"divan/shard/clone"
	"divan/shard/ring"
)

// CloneOptions say what is cloned from one copy of this node to another one.
type CloneOptions struct {
	Source, Target string // names of copies
	Range          ring.Range
	Partitioned    bool // places on the ring go by the partition
	// Progress, when set, hears how many changes of how many have been looked at.
	Progress func(done, total uint64)

	stepBytes int // of a batch; 0: what is usual
}

func (o *CloneOptions) belongs(id string) bool {
	return o.Range.Contains(ring.Hash(id, o.Partitioned))
}

// CloneRange brings the target to what a snapshot of the source holds in a range of
// the ring, each change under the sequence that it has in the source, and returns
// the last sequence of the snapshot, which the target's is then. All of that is
// durable on return. Documents come with all that is stored of them and with the
// purges that name them; local ones are not among them (CloneLocalDocs).
//
// The target is empty or was cloned from that source, and takes nothing else. It may
// be called again after whatever end: it goes on from what the target has and
// brings what has changed since. From then on the target names the source, and what
// that one continues, as its origins.
func (l *Local) CloneRange(ctx context.Context, o CloneOptions) (upto uint64, err error) {
	ctx, end, err := l.beginClone(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	snap, _, err := l.snapshot(ctx, o.Source)
	if err != nil {
		return 0, err
	}
	defer func() { _ = snap.Close() }() // read only: nothing to lose
	target, err := l.pin(ctx, o.Target)
	if err != nil {
		return 0, err
	}
	defer l.engine.Release(target)
	if err := l.waitDurable(ctx, o.Target, target.Counters().Seq); err != nil {
		return 0, err
	}
	if err := l.waitUnsequenced(ctx, o.Target); err != nil {
		return 0, err
	}
	err = clone.Run(ctx, clone.Options{
		Source: snap, Target: target, Belongs: o.belongs, Progress: o.Progress, StepBytes: o.stepBytes,
		Write: func(ctx context.Context, s *clone.Step) error {
			// The last step is durable after all others.
			return l.submit(ctx, o.Target, &exclusive{fn: s.Fill, edits: true, design: s.Design}, !s.Last)
		},
	})
	if err != nil {
		return 0, fmt.Errorf("clone %s to %s: %w", o.Source, o.Target, err)
	}
	return snap.Seq(), nil
}

// beginClone returns a context that ends with the Local, whose Close waits until end
// is called.
func (l *Local) beginClone(ctx context.Context) (_ context.Context, end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, errClosed()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l.wg.Add(1)
	ended := make(chan struct{})
	l.wg.Go(func() {
		select {
		case <-l.closing:
			cancel(errClosed())
		case <-ended:
		}
	})
	return ctx, func() {
		close(ended)
		cancel(nil)
		l.wg.Done()
	}, nil
}
