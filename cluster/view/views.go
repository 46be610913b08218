package view

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/designdocs"
	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/window"
	"divan/shard/ring"
	"divan/shard/script"
	shardview "divan/shard/view"
	"divan/storage/fault"
	"divan/storage/memory"
)

// Options configures Views. All are required.
type Options struct {
	Coordinator *cluster.Coordinator
	Config      *config.Holder
	Designs     *designdocs.Cache
	Indexes     *shardview.Views // those of this node
	Logger      *zap.Logger
}

// Views answers queries of views. It is safe for concurrent use.
type Views struct {
	o Options
}

// New returns the queries of views.
func New(o Options) (*Views, error) {
	if o.Coordinator == nil || o.Config == nil || o.Designs == nil || o.Indexes == nil || o.Logger == nil {
		return nil, errors.New("cluster/view: an option is missing")
	}
	return &Views{o}, nil
}

// View is a view of a design document.
type View struct {
	views *Views
	db    *cluster.DB
	def   *shardview.Definition
	of    shardview.ViewDefinition
}

// Definition returns what counts for the views of a design document, by its id; nil when it
// has none. The error is fault.NotFound "missing" or "deleted" when there is no such
// document.
func (v *Views) Definition(ctx context.Context, db *cluster.DB, id string) (*shardview.Definition, error) {
	d, err := v.o.Designs.Get(ctx, db, id)
	if err != nil {
		return nil, err
	}
	return d.Definition(db.Meta().Partitioned)
}

// View returns a view of a design document; the error is fault.NotFound
// "missing_named_view" when that has none of the name.
func (v *Views) View(db *cluster.DB, def *shardview.Definition, name string) (*View, error) {
	if def != nil {
		if of, ok := def.View(name); ok {
			if !script.Speaks(def.Language) && def.Language != shardview.Query {
				return nil, &fault.Error{Kind: fault.BadFunction, Code: "unknown_query_language", Reason: def.Language}
			}
			return &View{v, db, def, of}, nil
		}
	}
	return nil, fault.New(fault.NotFound, "missing_named_view")
}

// Reduces reports whether the view has a reduce function.
func (v *View) Reduces() bool { return v.of.Reduce != "" }

// Partitioned reports whether the view is asked for one partition.
func (v *View) Partitioned() bool { return v.def.Partitioned }

// Query answers a query. Total and Offset are sums over the shards, each of one
// moment; those of different shards may be of slightly different ones. With
// shardview.UpdateBefore the answer has every edit that was acknowledged before the
// query began.
func (v *View) Query(ctx context.Context, q Query) (*Rows, error) {
	ranges, err := q.ranges(&v.of)
	if err != nil {
		return nil, err
	}
	rows := &Rows{skip: max(q.Skip, 0), left: q.Limit, explain: func(err error) error { return v.db.Asking().Explain(ctx, err) }}
	if q.HasKeys && len(q.Keys) == 0 {
		ranges, rows.left, q.Limit = nil, 0, 0
	}
	sources, err := v.db.Sources(q.Partition, true)
	if err != nil {
		return nil, err
	}
	req := shardview.Request{
		Signature: v.def.Signature, Definition: v.def.Text, View: v.of.Name, Design: v.def.Design, Update: q.Update,
		Ranges: ranges, Desc: q.Descending, Limit: hint(&q, len(sources)), Partition: q.Partition,
		Reduce: q.Reduce, GroupLevel: q.GroupLevel, IncludeDocs: q.Docs.Include, Conflicts: q.Docs.Conflicts,
	}
	parts, err := v.open(ctx, sources, req)
	if err != nil {
		return nil, err
	}
	merged := newMerge(parts, q.Descending)
	if rows.source, err = v.source(ctx, merged, &q); err != nil {
		merged.close()
		return nil, err
	}
	if !q.Reduce {
		rows.describe(parts)
	}
	if q.UpdateSeq {
		rows.UpdateSeq, err = v.updateSeq(ctx, parts, &q)
	}
	if err != nil {
		merged.close()
	}
	return rows, err
}

// hint says how many rows of one of n shards the answer will most likely need. A
// group may be on all of them.
func hint(q *Query, n int) int {
	if q.Reduce {
		n = 1
	}
	return quorum.Share(q.Skip, q.Limit, n)
}

// source makes rows of what the shards give.
func (v *View) source(ctx context.Context, m *merge, q *Query) (source, error) {
	if q.Reduce {
		function, err := v.views.o.Indexes.Reducer(ctx, v.db.Instance(), v.of.Reduce, v.def.Lib)
		return &reduced{merge: m, function: function, level: q.GroupLevel}, err
	}
	out := &mapped{merge: m}
	if q.Docs.Include {
		out.docs = &documents{ctx: ctx, db: v.db, window: window.New(mostLinked, nil), parts: m.parts, held: memory.InSteps(q.Docs.Memory)}
	}
	return out, nil
}

// updateSeq returns the sequence that the answer reflects; of one partition it is
// that of the database.
func (v *View) updateSeq(ctx context.Context, parts []*part, q *Query) (string, error) {
	if q.Partition == "" {
		return updateSeq(parts), nil
	}
	info, err := v.db.Info(ctx)
	if err != nil {
		return "", err
	}
	return info.UpdateSeq, nil
}

// open opens the rows of every range, at once: indexes that have to be brought up
// to date are, side by side.
func (v *View) open(ctx context.Context, sources [][]ring.Replica, req shardview.Request) ([]*part, error) {
	asked := v.db.Asking()
	limit, stall := v.times(&req)
	parts := make([]*part, len(sources))
	err := v.each(sources, func(i int) error {
		p := &part{req: req, order: order(req.Desc)}
		p.FailoverStream = fanout.FailoverStream[position, shardview.Head, shardview.Batch]{
			Database: asked, Log: v.views.o.Logger, Ctx: ctx, Kind: p, Copies: sources[i],
			Limit: limit, Stall: stall, Patience: deciderPatience,
		}
		parts[i] = p
		err := p.Start()
		if err == nil {
			err = p.begin()
		}
		return err
	})
	if err == nil {
		return parts, nil
	}
	for _, p := range parts {
		p.Close()
	}
	return nil, asked.Explain(ctx, err)
}

// shortPatience is how long the ranges of a query are opened one after the other
// when this node has all of them: longer than the first rows take from an index
// that is up to date.
const shortPatience = 100 * time.Microsecond

// each calls f for every range.
func (v *View) each(sources [][]ring.Replica, f func(i int) error) error {
	for _, copies := range sources {
		if len(copies) == 0 || copies[0].Node != v.db.Asking().Node() {
			return fanout.Each(len(sources), f)
		}
	}
	return fanout.EachSoon(len(sources), shortPatience, f)
}

// deciderPatience is how long the copy that decides edits is waited for before
// another one is asked as well: its index may have to be built, and another copy may
// lack an edit that was acknowledged, or have no index yet. A node that cannot be
// reached is noticed at once.
const deciderPatience = 24 * time.Hour

// times returns how long opening a copy of another node may take, and how long a
// batch.
func (v *View) times(req *shardview.Request) (limit, stall time.Duration) {
	set := v.views.o.Config.Load().Fabric
	limit = set.ViewTimeout
	if req.Partition != "" {
		limit = set.PartitionViewTimeout
	}
	stall = limit
	if stall == 0 && !req.Reduce { // functions take the time they take
		stall = set.AllDocsTimeout
	}
	return limit, stall
}
