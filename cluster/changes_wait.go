package cluster

import (
	"context"
	"io"
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
		f.err = f.db.explain(f.watch())
	}
	for f.err == nil {
		moved, err := f.moved(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.err = f.db.explain(err); f.err != nil || moved {
			break
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return f.err
}

// watch begins to watch all copies. What has moved before that is seen because
// the copies are looked at afterwards.
func (f *Feed) watch() error {
	f.wake = make(chan struct{}, 1)
	for _, p := range f.parts {
		rep, err := f.replica(p)
		if err != nil {
			return err
		}
		w, err := rep.Watch(p.target.name, f.wake)
		if err != nil {
			return err
		}
		f.watches = append(f.watches, w)
	}
	return nil
}

// moved opens the parts again whose copies have gone on, and reports whether
// there are any.
func (f *Feed) moved(ctx context.Context) (bool, error) {
	some := false
	for i, p := range f.parts {
		if p.more {
			some = true
			continue
		}
		uuid, seq, err := f.position(ctx, p)
		if err != nil {
			return false, err
		}
		m := f.at.marks[i]
		if prefixOf(uuid) == m.copy && seq <= m.seq {
			continue
		}
		some = true
		p.hint = int(min(max(seq, m.seq)-m.seq, maxLiveHint))
		if f.left > 0 {
			p.hint = min(p.hint, f.left)
		}
		start, head, err := f.resume(p, Seq{marks: f.at.marks})
		if err != nil {
			return false, err
		}
		f.at.move(i, prefixOf(head.UUID), start)
	}
	return some, nil
}
