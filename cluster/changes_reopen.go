package cluster

import (
	"errors"
	"slices"

	"divan/cluster/sequence"
)

// openAgain opens the feed again where it is when it has ended because the ranges of the database
// are others by now, and reports whether it goes on. Backwards it cannot tell where it was
// once it has shown something.
func (f *Feed) openAgain() bool {
	if !errors.Is(f.err, errNewRanges) || f.ctx.Err() != nil || f.at.Marks == nil ||
		f.query.Descending && slices.ContainsFunc(f.parts, func(p *changePart) bool { return p.shown }) {
		return false
	}
	next, ok := f.db.renewed(f.ctx)
	if !ok {
		return false
	}
	q := f.query
	q.Limit = f.left
	if !q.Descending {
		q.Since = sequence.Of(slices.Clone(f.at.Marks))
	}
	fresh, err := next.Changes(f.ctx, q)
	if err != nil {
		f.err = err
		return false
	}
	f.unask()
	for _, p := range f.parts {
		p.Close()
		p.unwatch()
	}
	if f.wake != nil {
		f.db.here.Forget(f.wake)
	}
	f.db, f.parts, f.at, f.turn, f.chunk, f.quota = next.replicaSet, fresh.parts, fresh.at, 0, fresh.chunk, fresh.quota
	for _, p := range f.parts {
		p.feed = f
	}
	if f.err = nil; f.wake != nil {
		f.err = next.explain(f.ctx, f.watchAll())
	}
	return f.err == nil
}
