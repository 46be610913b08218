package search

import (
	"context"

	"divan/shard/index"
	"divan/storage/fault"
)

// Indexes are the full-text indexes of a node. It is safe for concurrent use.
type Indexes struct{ manager *index.Manager }

// New returns the indexes of the copies of this node, which its manager keeps.
func New(manager *index.Manager) *Indexes { return &Indexes{manager} }

// Query answers a request. An index that turns out to be damaged is built anew first.
func (s *Indexes) Query(ctx context.Context, req Request) (*Answer, error) {
	spec := index.Spec{Name: req.Definition.name(), Design: req.Definition.Design, Open: func(context.Context) (index.Kind, bool, error) {
		return &searchIndex{def: req.Definition}, false, nil
	}}
	for retried := false; ; retried = true {
		use, err := s.manager.Acquire(ctx, req.Copy, spec)
		if err != nil {
			return nil, err
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
	if !req.Stale {
		if err := use.Update(ctx); err != nil {
			return nil, err
		}
	}
	snap, err := use.Index.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	return run(ctx, snap, req)
}
