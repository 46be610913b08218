package cluster

import (
	"context"
	"io"
	"slices"
	"time"

	"divan/cluster/sequence"
	"divan/shard/ring"
)

// maxLiveHint bounds what a part prepares to read after it was woken.
const maxLiveHint = 1024

// Wait blocks until there is something new that is durable, so that Next may
// find rows again. It returns io.EOF for a feed that has reached its limit or
// runs backwards, the error of ctx, and what Err says when the feed is over
// for another reason. After the error of ctx, Wait may be called again, and goes
// on with what it was about; otherwise it is called after Next has returned
// false.
func (f *Feed) Wait(ctx context.Context) error {
	if f.err == nil && (f.query.Descending || f.left == 0) {
		return io.EOF
	}
	if f.err == nil && f.wake == nil {
		f.err = f.db.explain(f.ctx, f.watchAll()) //nolint:contextcheck // the end of the feed, which is not this wait's
	}
	for f.err == nil || f.openAgain() {
		if f.err = f.db.explain(f.ctx, f.watchAgain()); f.err != nil { //nolint:contextcheck // as above
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.ready() {
			return nil
		}
		at, err := f.positions(ctx)
		if err != nil {
			return err
		}
		if f.err = f.db.explain(f.ctx, f.follow(at)); f.err == nil && !f.ready() { //nolint:contextcheck // as above
			if err := f.sleep(ctx); err != nil {
				return err
			}
		}
	}
	return f.err
}

// ready reports whether a part has something to read.
func (f *Feed) ready() bool {
	return slices.ContainsFunc(f.parts, func(p *changePart) bool { return p.Reading() })
}

// elsewhere reports whether a part is read from another node.
func (f *Feed) elsewhere() bool {
	return slices.ContainsFunc(f.parts, func(p *changePart) bool { return p.target().Node != f.db.node })
}

// lookEvery is how often a waiting feed looks at copies of other nodes: a node that has begun to
// refuse reads, or hangs, does not wake the feed.
const lookEvery = 5 * time.Second

// sleep returns when a copy may have moved on, or the error of ctx.
func (f *Feed) sleep(ctx context.Context) error {
	var look <-chan time.Time
	if f.elsewhere() {
		timer := time.NewTimer(lookEvery)
		defer timer.Stop()
		look = timer.C
	}
	select {
	case <-f.wake:
		return nil
	case <-look:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watchAll begins to watch all copies. What has moved before that is seen
// because the copies are looked at afterwards.
func (f *Feed) watchAll() error {
	f.wake = make(chan struct{}, 1)
	f.epoch = f.db.here.Epoch()
	f.db.here.Tell(f.wake)
	for _, p := range f.parts {
		if err := p.observe(); err != nil {
			if err = p.FailOver(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// watchAgain watches the copies of other nodes again after one has come or
// gone: a watch does not outlive the connection it goes through.
func (f *Feed) watchAgain() error {
	epoch := f.db.here.Epoch()
	if f.epoch == epoch {
		return nil
	}
	f.epoch = epoch
	for _, p := range f.parts {
		if p.target().Node == f.db.node {
			continue
		}
		if err := p.observe(); err != nil {
			if err = p.FailOver(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// placed is where a copy is.
type placed struct {
	uuid [16]byte
	seq  uint64
	err  error
}

// follow opens the parts again whose copies have gone on.
func (f *Feed) follow(all []placed) error {
	for i, at := range all {
		p := f.parts[i]
		m := f.at.Marks[i]
		switch {
		case at.err != nil:
			if err := p.FailOver(at.err); err != nil {
				return err
			}
			continue
		case sequence.PrefixOf(at.uuid) == m.Copy && at.seq <= m.Seq:
			continue
		}
		p.hint = int(min(max(at.seq, m.Seq)-m.Seq, maxLiveHint))
		if f.left > 0 {
			p.hint = min(p.hint, f.left)
		}
		if err := p.Start(); err != nil {
			return err
		}
	}
	return nil
}

// question is the request for the positions of the copies of all parts.
type question struct {
	answer chan []placed // has space for one
	stop   context.CancelFunc
}

// positions returns where the copies of all parts are, none of which has
// anything to read, or the error of ctx. Other nodes may take longer to answer
// than a wait lasts, which ends for each heartbeat: the question goes on then,
// and the next wait gets the answer.
func (f *Feed) positions(ctx context.Context) ([]placed, error) { //nolint:contextcheck // as below
	if f.asked == nil && !f.elsewhere() {
		return f.ask(f.ctx, f.targets()), nil //nolint:contextcheck // the question is the feed's, not this wait's
	}
	if f.asked == nil {
		own, stop := context.WithCancel(f.ctx)
		q := &question{answer: make(chan []placed, 1), stop: stop}
		f.asked = q
		targets := f.targets()
		go func() { q.answer <- f.ask(own, targets) }() // unask waits for it
	}
	select {
	case at := <-f.asked.answer:
		f.asked.stop()
		f.asked = nil
		return at, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// targets returns the copies that the parts are read from.
func (f *Feed) targets() []ring.Replica {
	out := make([]ring.Replica, len(f.parts))
	for i, p := range f.parts {
		out[i] = p.target()
	}
	return out
}

// ask does the asking of positions.
func (f *Feed) ask(ctx context.Context, copies []ring.Replica) []placed {
	out := make([]placed, len(copies))
	_ = f.db.onEach(copies, func(i int) error { // errors are in out
		at, err := f.position(ctx, copies[i])
		out[i].uuid, out[i].seq, out[i].err = at.UUID, at.Seq, err
		return nil
	})
	return out
}

// unask ends a question whose answer is not wanted any more.
func (f *Feed) unask() {
	if f.asked == nil {
		return
	}
	f.asked.stop()
	<-f.asked.answer
	f.asked = nil
}
