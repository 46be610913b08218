package search

import (
	"context"

	"go.uber.org/zap"

	"divan/shard"
	"divan/shard/index"
	"divan/storage"
	"divan/storage/fault"
)

// Options are what Indexes are made of. Engine and Shards are required.
type Options struct {
	Engine *storage.Engine
	Shards *shard.Local
	Logger *zap.Logger // default: none
	// Memory is that of all updates together, in bytes; see index.Options.
	Memory int64
}

// Indexes are the full-text indexes of a node. It is safe for concurrent use.
type Indexes struct{ manager *index.Manager }

// New returns the indexes of the copies of this node. It starts nothing: Run has to be
// called for what happens in the background, and Close.
func New(o Options) *Indexes {
	return &Indexes{index.New(index.Options{Engine: o.Engine, Shards: o.Shards, Logger: o.Logger, Memory: o.Memory})}
}

// Run updates indexes in the background until ctx ends, and closes the Indexes.
func (s *Indexes) Run(ctx context.Context) error { return s.manager.Run(ctx) }

// CopyDropped ends the work on the indexes of a copy that is gone. It does not wait for
// that.
func (s *Indexes) CopyDropped(copyName string) { s.manager.CopyDropped(copyName) }

// Close stops updates and waits for them. It may be called more than once.
func (s *Indexes) Close() error { return s.manager.Close() }

// Query answers a request. An index that turns out to be damaged is built anew first.
func (s *Indexes) Query(ctx context.Context, req Request) (*Answer, error) {
	spec := index.Spec{Signature: req.Definition.Signature, Design: req.Definition.Design, Open: func(context.Context) (index.Kind, bool, error) {
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
