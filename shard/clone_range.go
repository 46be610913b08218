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

	// Pace, when set, returns when so many bytes more may be copied.
	Pace func(ctx context.Context, bytes int) error

	stepBytes int // of a batch; 0: what is usual
}

func (o *CloneOptions) belongs(id string) bool {
	return o.Range.Contains(ring.Hash(id, o.Partitioned))
}

// Clones makes copies of parts of other copies of this node.
type Clones struct {
	states *copyStates
}

// Range brings the target to what a snapshot of the source holds in a range of
// the ring, each change under the sequence that it has in the source, and returns
// the last sequence of the snapshot, which the target's is then. All of that is
// durable on return. Documents come with all that is stored of them and with the
// purges that name them; local ones are not among them (LocalDocs).
//
// The target is empty or was cloned from that source, and takes nothing else. It may
// be called again, however it ended: it goes on from what the target has and brings
// what has changed since. From then on the target names the source, and the stores
// that the source continues, as its origins.
func (c *Clones) Range(ctx context.Context, o CloneOptions) (upto uint64, err error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	snap, _, err := c.states.snapshot(ctx, o.Source)
	if err != nil {
		return 0, err
	}
	defer func() { _ = snap.Close() }() // read only: nothing to lose
	target, err := c.states.pin(ctx, o.Target)
	if err != nil {
		return 0, err
	}
	defer c.states.engine.Release(target)
	if err := c.states.waitDurable(ctx, o.Target, target.Counters().Seq); err != nil {
		return 0, err
	}
	if err := c.states.waitUnsequenced(ctx, o.Target); err != nil {
		return 0, err
	}
	err = clone.Run(ctx, clone.Options{
		Source: snap, Target: target, Belongs: o.belongs, Progress: o.Progress, StepBytes: o.stepBytes, Pace: o.Pace,
		Write: func(ctx context.Context, s *clone.Step) error {
			// The last step is durable after all others.
			return c.states.submit(ctx, target, &exclusive{fn: s.Fill, edits: true, design: s.Design}, !s.Last)
		},
	})
	if err != nil {
		return 0, fmt.Errorf("clone %s to %s: %w", o.Source, o.Target, err)
	}
	return snap.Seq(), nil
}

// begin returns a context that ends with the Local, whose Close waits until end
// is called.
func (c *Clones) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	c.states.mu.Lock()
	defer c.states.mu.Unlock()
	if c.states.closed {
		return nil, nil, errClosed()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.states.wg.Add(1)
	ended := make(chan struct{})
	c.states.wg.Go(func() {
		select {
		case <-c.states.closing:
			cancel(errClosed())
		case <-ended:
		}
	})
	return ctx, func() {
		close(ended)
		cancel(nil)
		c.states.wg.Done()
	}, nil
}
