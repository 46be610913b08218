package cluster

import (
	"context"
	"io"
	"slices"
	"time"
)

// maxLiveHint bounds what a part prepares to read after it was woken.
const maxLiveHint = 1024

// Wait blocks until there is something new that is durable, so that Next may
// find rows again. It returns io.EOF for a feed that has reached its limit or
// runs backwards, the error of ctx, and what Err says when the feed is over
// for another reason. It is called after Next has returned false.
func (f *Feed) Wait(ctx context.Context) error {
	if f.err == nil && (f.query.Descending || f.left == 0) {
		return io.EOF
	}
	if f.err == nil && f.wake == nil {
		f.err = f.db.explain(ctx, f.watchAll())
	}
	for f.err == nil {
		moved, err := f.moved(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.err = f.db.explain(ctx, err); f.err != nil || moved {
			break
		}
		if err := f.sleep(ctx); err != nil {
			return err
		}
	}
	return f.err
}

// lookEvery is how often a waiting feed looks at copies of other nodes: a node
// that has begun to refuse reads, or hangs, does not wake anybody.
const lookEvery = 5 * time.Second

// sleep returns when a copy may have moved on, or the error of ctx.
func (f *Feed) sleep(ctx context.Context) error {
	var look <-chan time.Time
	if slices.ContainsFunc(f.parts, func(p *changePart) bool { return p.target.node != f.db.c.node }) {
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
	f.epoch = f.db.c.here.epoch.Load()
	f.db.c.here.tell(f.wake)
	for i, p := range f.parts {
		if err := f.watch(p); err != nil {
			if err = f.goOn(f.ctx, i, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// watchAgain watches the copies of other nodes again after one has come or
// gone: a watch does not outlive the connection it goes through.
func (f *Feed) watchAgain() error {
	epoch := f.db.c.here.epoch.Load()
	if f.epoch == epoch {
		return nil
	}
	f.epoch = epoch
	for i, p := range f.parts {
		if p.target.node == f.db.c.node {
			continue
		}
		if err := f.watch(p); err != nil {
			if err = f.goOn(f.ctx, i, err); err != nil {
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

// moved opens the parts again whose copies have gone on, and reports whether
// there are any.
func (f *Feed) moved(ctx context.Context) (bool, error) {
	if err := f.watchAgain(); err != nil {
		return false, err
	}
	some := false
	for i, at := range f.positions(ctx) {
		p := f.parts[i]
		switch m := f.at.marks[i]; {
		case p.more:
			some = true
			continue
		case at.err != nil:
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if err := f.goOn(f.ctx, i, at.err); err != nil { //nolint:contextcheck // streams live as long as the feed, not as this wait
				return false, err
			}
			some = some || p.more
			continue
		case prefixOf(at.uuid) == m.copy && at.seq <= m.seq:
			continue
		default:
			p.hint = int(min(max(at.seq, m.seq)-m.seq, maxLiveHint))
		}
		some = true
		if f.left > 0 {
			p.hint = min(p.hint, f.left)
		}
		m, err := f.beginAt(f.ctx, p, Seq{marks: f.at.marks}) //nolint:contextcheck // streams live as long as the feed, not as this wait
		if err != nil {
			f.shut(p)
			if err = f.goOn(f.ctx, i, err); err != nil { //nolint:contextcheck // streams live as long as the feed, not as this wait
				return false, err
			}
			continue
		}
		f.at.move(i, m.copy, m.seq)
	}
	return some, nil
}

// positions asks where the copies of all parts are that have nothing to read.
func (f *Feed) positions(ctx context.Context) []placed {
	out := make([]placed, len(f.parts))
	one := func(i int) error {
		if p := f.parts[i]; !p.more {
			out[i].uuid, out[i].seq, out[i].err = f.position(ctx, p)
		}
		return nil
	}
	for _, p := range f.parts {
		if p.target.node != f.db.c.node {
			_ = each(len(f.parts), one) // errors are in out
			return out
		}
	}
	for i := range f.parts {
		_ = one(i) // its error is in out
	}
	return out
}
