package view

import (
	"context"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/ring"
	"divan/shard/script"
	"divan/shard/view/reduce"
	"divan/storage/fault"
)

// Options configure Views. Indexes, Shards and Scripts are required.
type Options struct {
	Indexes *index.Manager // of the node; its indexes of views are made by the Views
	Shards  *shard.Local
	Scripts *script.Engine
	Logger  *zap.Logger // default: none
	// Limit is the setting reduce_limit; nil: reduce.DefaultLimit.
	Limit func() reduce.Limit
}

// Views are the view indexes of a node. It is safe for concurrent use.
type Views struct {
	indexes *index.Manager
	shards  *shard.Local
	scripts *script.Engine
	limit   func() reduce.Limit
	long    uint64 // longUpdate
	dense   uint64 // denseGroups
	large   int    // index.CommitBytes
	held    atomic.Int64
	scratch sync.Pool // *scratch
	log     *zap.Logger

	compiled compiledReducers
}

// New returns the views of the copies of this node.
func New(o Options) *Views {
	if o.Limit == nil {
		o.Limit = reduce.DefaultLimit
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	v := &Views{
		indexes: o.Indexes, shards: o.Shards, scripts: o.Scripts, limit: o.Limit, long: longUpdate, dense: denseGroups, large: index.CommitBytes, log: o.Logger,
	}
	o.Indexes.Register(index.View, func(ctx context.Context, copyName string, d index.Definition) (index.Kind, bool, error) {
		def, err := ParseText(d.Text)
		if err != nil {
			return nil, false, err
		}
		return v.open(ctx, copyName, def)
	})
	return v
}

// spec says how the index of a definition on a copy is made.
func (v *Views) spec(copyName string, d *Definition) index.Spec {
	return index.Spec{Name: d.name(), Design: d.Design, Open: func(ctx context.Context) (index.Kind, bool, error) { return v.open(ctx, copyName, d) }}
}

// specOf is spec for a request, whose definition is read only when it is needed.
func (v *Views) specOf(req *Request) index.Spec {
	return index.Spec{Name: index.Name{Type: index.View, Signature: req.Signature}, Design: req.Design, Open: func(ctx context.Context) (index.Kind, bool, error) {
		d, err := ParseText(req.Definition)
		if err == nil && d.Signature != req.Signature {
			err = fault.New(fault.BadRequest, "The signature is not that of the definition.")
		}
		if err != nil {
			return nil, false, err
		}
		return v.open(ctx, req.Copy, d)
	}}
}

// open makes what maps documents for the index of a definition on a copy.
func (v *Views) open(ctx context.Context, copyName string, d *Definition) (kind index.Kind, sequences bool, err error) {
	x := &viewIndex{def: d, long: v.long, dense: v.dense, large: v.large, held: &v.held}
	defer func() {
		if err != nil {
			x.closeScripts()
		}
	}()
	instance := ring.CopyTail(copyName)
	x.trees, x.places = d.trees()
	for t := range x.trees {
		for i := range x.trees[t].reducers {
			if err = v.openReducer(ctx, &x.trees[t].reducers[i], instance, d.Lib); err != nil {
				return nil, false, err
			}
		}
	}
	if x.mapper, err = newMapper(ctx, d, x.trees, v.scripts, instance); err != nil {
		return nil, false, err
	}
	return x, d.LocalSeq, nil
}

// openReducer makes the function of a reducer of an index.
func (v *Views) openReducer(ctx context.Context, r *reducer, instance string, lib []byte) (err error) {
	if r.function, err = reduce.BuiltinWithin(r.source, v.limit); r.function != nil || err != nil {
		return err
	}
	if r.script, err = v.scripts.Reducer(ctx, instance, r.source, lib); err == nil {
		r.function = v.scriptReduce(r.script, r.source)
	}
	return err
}

// acquire opens the index that a request names.
func (v *Views) acquire(ctx context.Context, copyName string, spec index.Spec) (*index.Use, *viewIndex, error) {
	use, err := v.indexes.Acquire(ctx, copyName, spec)
	if err != nil {
		return nil, nil, err
	}
	return use, use.Kind().(*viewIndex), nil
}

// Query answers a request; close the stream. An unknown view is fault.NotFound.
// An index that turns out to be damaged is built anew first.
func (v *Views) Query(ctx context.Context, req Request) (*Stream, error) {
	for retried := false; ; retried = true {
		use, x, err := v.acquire(ctx, req.Copy, v.specOf(&req))
		if err != nil {
			return nil, err
		}
		if err := v.prepare(ctx, &req, use, x); err != nil {
			use.Release()
			return nil, err
		}
		s, err := v.query(ctx, req, use, x)
		if err == nil {
			return s, nil
		}
		damaged := fault.Is(err, fault.Corruption)
		if damaged {
			use.Discard(err)
		}
		use.Release()
		if !damaged || retried {
			return nil, err
		}
	}
}

// prepare refuses what cannot be answered, and brings the index up to date.
func (v *Views) prepare(ctx context.Context, req *Request, use *index.Use, x *viewIndex) error {
	at, ok := x.places[req.View]
	switch {
	case !ok:
		return fault.New(fault.NotFound, "missing_named_view")
	case req.Reduce && at.reducer < 0:
		return fault.New(fault.QueryParse, "Reduce is invalid for map-only views.")
	case req.Update == UpdateBefore:
		return use.Update(ctx)
	}
	return nil
}

func (v *Views) query(ctx context.Context, req Request, use *index.Use, x *viewIndex) (*Stream, error) {
	snap, err := use.Index.Snapshot()
	if err != nil {
		return nil, err
	}
	at := x.places[req.View]
	s := &Stream{ctx: ctx, req: req, views: v, use: use, snap: snap, t: &x.trees[at.tree]}
	if err := s.open(x, at); err != nil {
		s.closeSnapshot()
		return nil, err
	}
	if req.Update == UpdateAfter {
		use.Start()
	}
	return s, nil
}
