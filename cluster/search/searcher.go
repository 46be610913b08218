package search

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/fanout"
	"divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/memory"
)

// Options configures a Searcher. All are required.
type Options struct {
	Config *config.Holder
	Logger *zap.Logger
}

// Searcher answers full-text queries. It is safe for concurrent use.
type Searcher struct{ o Options }

// New returns the queries of a node.
func New(o Options) (*Searcher, error) {
	if o.Config == nil || o.Logger == nil {
		return nil, errors.New("cluster/search: an option is missing")
	}
	return &Searcher{o}, nil
}

// Query is a query of an index of a database.
type Query struct {
	Definition *search.Definition
	search.Request
	Asked Ranges // of the pages before, with Request.After
	// Memory counts what the query holds, and what its answer does afterwards; nil: nothing
	// counts.
	Memory memory.Holder
}

// Found is the answer to a query.
type Found struct {
	search.Answer
	Asked Ranges // for the Place of the next page
	Held  int    // bytes of Query.Memory that the caller drops with the answer
}

// Continue makes a query one for what is behind a place; nil: for all. ok is false when
// the place is one in another order, which the caller refuses.
func (q *Query) Continue(p *Place) (ok bool) {
	if p == nil {
		return true
	}
	q.After, q.Asked = &p.Position, p.Asked
	return len(p.Order) == parts(q.Sort)
}

// deciderPatience is how long the copy that decides edits is waited for before another one is
// asked as well: its index may have to be built. A node that cannot be reached is noticed at once.
const deciderPatience = 24 * time.Hour

// Query answers a query of a database. Without Request.Stale it has every edit that was
// acknowledged before. A page that cannot be continued is fault.BadRequest.
func (s *Searcher) Query(ctx context.Context, db *cluster.DB, q Query) (*Found, error) {
	q.Signature, q.Request.Definition = q.Definition.Signature, q.Definition.Text
	q.Design, q.Label = q.Definition.Design, q.Definition.Label
	r := &request{searcher: s, ctx: ctx, db: db, dialect: q.Definition.Dialect, req: q.Request, before: q.Asked}
	r.held.bytes = memory.InSteps(q.Memory)
	answer := r.hits
	if q.Group != nil {
		answer = r.groups
	}
	out, err := answer()
	if err != nil {
		r.held.end(0)
		return nil, err
	}
	out.Held = r.held.end(r.size)
	return out, nil
}

// request is one query under way.
type request struct {
	searcher *Searcher
	ctx      context.Context
	db       *cluster.DB
	dialect  syntax.Dialect
	req      search.Request
	before   Ranges // of the pages before
	ranges   Ranges // of this page, and the next ones
	size     int    // bytes of the answer so far
	held     held
}

// grow adds n bytes to the answer.
func (r *request) grow(n int) error {
	if r.size += n; r.size > maxResultBytes {
		return errTooLarge()
	}
	return nil
}

// open asks a copy of every range, all at once: indexes that have to be brought up to date are,
// side by side. The parts are closed when there is an error.
func (r *request) open(req search.Request) ([]*part, error) {
	sources, err := r.db.Sources(req.Partition, true)
	if err != nil {
		return nil, err
	}
	if r.ranges = AnyRanges; req.Group == nil && dependsOnRanges(&req, r.dialect) {
		r.ranges = rangesOf(sources)
	}
	if continued := req.After != nil || r.before != AnyRanges; continued && r.ranges != AnyRanges && r.before != r.ranges {
		return nil, errOtherRanges() // also for a bookmark that names none
	}
	asked := r.db.Asking()
	set := r.searcher.o.Config.Load().Fabric
	limit := set.SearchTimeout
	if r.dialect == syntax.Nouveau {
		limit = set.NouveauTimeout
	}
	parts := make([]*part, len(sources))
	err = fanout.Each(len(sources), func(i int) error {
		p := &part{req: req, held: &r.held}
		p.FailoverStream = fanout.FailoverStream[position, head, batch]{
			Database: asked, Log: r.searcher.o.Logger, Ctx: r.ctx, Kind: p, Copies: sources[i],
			Limit: limit, Stall: limit, Patience: deciderPatience,
		}
		parts[i] = p
		return p.Start()
	})
	if err != nil {
		closeAll(parts)
		return nil, asked.Explain(r.ctx, err)
	}
	return parts, nil
}

func closeAll(parts []*part) {
	for _, p := range parts {
		if p != nil {
			p.Close()
		}
	}
}
