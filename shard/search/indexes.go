package search

import (
	"context"
	"runtime"
	"time"

	"divan/shard/index"
	"divan/shard/ring"
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// OpenIndexer makes what an index of a database keeps of documents; instance is that of the
// database. The error is a *fault.Error when the definition is at fault.
type OpenIndexer func(ctx context.Context, instance string, d *Definition) (Indexer, error)

// Indexes are the full-text indexes of a node. It is safe for concurrent use.
type Indexes struct {
	manager    *index.Manager
	open       OpenIndexer
	chunkBytes uint64 // as of postings.NewWriter
	turns      *turns
}

// New returns the indexes of the copies of this node, which its manager keeps.
func New(manager *index.Manager, open OpenIndexer) *Indexes {
	s := &Indexes{manager, open, postings.ChunkBytes, newTurns(runtime.GOMAXPROCS(0))}
	manager.Register(index.Search, func(ctx context.Context, copyName string, d index.Definition) (index.Kind, bool, error) {
		return s.kind(ctx, copyName, d.Signature, d.Text)
	})
	return s
}

// kind makes the index of a definition on a copy.
func (s *Indexes) kind(ctx context.Context, copyName, signature string, text []byte) (kind index.Kind, sequences bool, err error) {
	d, err := ParseText(text)
	if err == nil && d.Signature != signature {
		err = fault.New(fault.BadRequest, "The signature is not that of the definition.")
	}
	if err != nil {
		return nil, false, err
	}
	indexer, err := s.open(ctx, ring.CopyTail(copyName), d)
	if err != nil {
		return nil, false, err
	}
	return &searchIndex{def: d, indexer: indexer, chunkBytes: s.chunkBytes}, false, nil
}

// Query answers a request. An index that turns out to be damaged is built anew first.
func (s *Indexes) Query(ctx context.Context, req Request) (*Answer, error) {
	spec := index.Spec{
		Name: index.Name{Type: index.Search, Signature: req.Signature}, Design: req.Design, Label: req.Label,
		Open: func(ctx context.Context) (index.Kind, bool, error) {
			return s.kind(ctx, req.Copy, req.Signature, req.Definition)
		},
	}
	for retried := false; ; retried = true {
		use, err := s.manager.Acquire(ctx, req.Copy, spec)
		if err != nil {
			return nil, err
		}
		if retried && req.Stale { // which waits for nothing; what was damaged is built all the same
			use.Start()
		}
		a, err := s.query(ctx, &req, use)
		damaged := fault.Is(err, fault.Corruption)
		if damaged {
			use.Discard(err)
		}
		use.Release()
		if !damaged || retried {
			return a, err
		}
	}
}

func (s *Indexes) query(ctx context.Context, req *Request, use *index.Use) (*Answer, error) {
	def := use.Kind().(*searchIndex).def
	if err := req.check(); err != nil { // before the index is brought up to date
		return nil, err
	}
	q, err := syntax.Parse(req.Query, def.Dialect)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if !req.Stale {
		if err := use.Update(ctx); err != nil {
			return nil, err
		}
	}
	waited := time.Since(began)
	snap, err := use.Index.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	t := s.turns.newTurn(ctx, ring.CopyTail(req.Copy))
	defer t.end()
	e, err := newEvaluation(t, snap, def, q, req)
	if err != nil {
		return nil, err
	}
	a, err := e.run()
	if a != nil {
		a.Waited = waited
	}
	return a, err
}
