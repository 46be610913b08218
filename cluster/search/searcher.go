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
)

// Options are what a Searcher is made of. All are required.
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

// Query is what is asked of an index of a database.
type Query struct {
	Definition *search.Definition
	search.Request
}

// deciderPatience is how long the copy that decides edits is waited for before another one is
// asked as well: its index may have to be built. A node that cannot be reached is noticed at once.
const deciderPatience = 24 * time.Hour

// Query answers a query of a database. Without Request.Stale it has every edit that was
// acknowledged before.
func (s *Searcher) Query(ctx context.Context, db *cluster.DB, q Query) (*search.Answer, error) {
	q.Signature, q.Request.Definition = q.Definition.Signature, q.Definition.Text
	q.Design, q.Label = q.Definition.Design, q.Definition.Label
	r := &request{searcher: s, ctx: ctx, db: db, dialect: q.Definition.Dialect, req: q.Request}
	if q.Group != nil {
		return r.groups()
	}
	return r.hits()
}

// request is one query under way.
type request struct {
	searcher *Searcher
	ctx      context.Context
	db       *cluster.DB
	dialect  syntax.Dialect
	req      search.Request
}

// open asks a copy of every range, all at once: indexes that have to be brought up to date are,
// side by side. The parts are closed when there is an error.
func (r *request) open(req search.Request) ([]*part, error) {
	sources, err := r.db.Sources(req.Partition, true)
	if err != nil {
		return nil, err
	}
	asked := r.db.Asking()
	set := r.searcher.o.Config.Load().Fabric
	limit := set.SearchTimeout
	if r.dialect == syntax.Nouveau {
		limit = set.NouveauTimeout
	}
	parts := make([]*part, len(sources))
	err = fanout.Each(len(sources), func(i int) error {
		p := &part{req: req}
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
