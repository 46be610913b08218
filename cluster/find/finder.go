package find

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/designdocs"
	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/search"
	"divan/cluster/window"
	"divan/shard/find"
	"divan/shard/query"
	"divan/shard/query/plan"
	"divan/shard/ring"
	"divan/shard/view"
	"divan/storage/fault"
	"divan/storage/memory"
)

// Options configures a Finder. All but Heavy are required.
type Options struct {
	Config  *config.Holder
	Designs *designdocs.Cache
	Logger  *zap.Logger
	// Heavy bounds the matching that takes long of documents that are read from
	// several copies; the copies bound the rest. nil: nothing does.
	Heavy query.Gate
}

// Finder answers Mango queries. It is safe for concurrent use.
type Finder struct {
	o        Options
	searcher *search.Searcher
}

// New returns a Finder.
func New(o Options) (*Finder, error) {
	if o.Config == nil || o.Designs == nil || o.Logger == nil {
		return nil, errors.New("cluster/find: an option is missing")
	}
	s, err := search.New(search.Options{Config: o.Config, Logger: o.Logger})
	return &Finder{o, s}, err
}

// Parse reads the body of a query.
func (f *Finder) Parse(body []byte) (*plan.Find, error) {
	return plan.ParseFind(body, int(f.o.Config.Load().Mango.DefaultLimit))
}

// Explain appends what Find would do with a query.
func (f *Finder) Explain(ctx context.Context, db *cluster.DB, q *plan.Find, dst []byte) ([]byte, error) {
	if err := checkPartition(db, q.Partition); err != nil {
		return nil, err
	}
	indexes, err := f.Indexes(ctx, db)
	if err != nil {
		return nil, err
	}
	return plan.AppendExplain(dst, q, indexes.List, f.describe(db))
}

func (f *Finder) describe(db *cluster.DB) plan.Database {
	set := f.o.Config.Load().Search
	return plan.Database{
		Name: db.Name(), Partitioned: db.Meta().Partitioned,
		TextLimits: [2]int{int(set.MaxLimit), int(set.NouveauMaxLimit)},
	}
}

func checkPartition(db *cluster.DB, name string) error {
	if name == "" {
		return nil
	}
	if err := cluster.ValidatePartition(name); err != nil {
		return err
	}
	if !db.Meta().Partitioned {
		return fault.New(fault.BadRequest, "`partition` is not supported on this db")
	}
	return nil
}

// Find begins to answer a query. What the answer holds is counted on m, which may be nil. Close the
// answer.
func (f *Finder) Find(ctx context.Context, db *cluster.DB, q *plan.Find, m memory.Holder) (*Rows, error) {
	if err := checkPartition(db, q.Partition); err != nil {
		return nil, err
	}
	indexes, err := f.Indexes(ctx, db)
	if err != nil {
		return nil, err
	}
	p, err := plan.Choose(q, indexes.List, f.describe(db))
	if err != nil {
		return nil, err
	}
	r := &Rows{
		ctx: ctx, db: db, find: q, plan: p, of: indexes.definitions[p.Index.Design], skip: q.Skip, left: q.Limit, started: time.Now(),
		threshold: f.o.Config.Load().Mango.IndexScanWarningThreshold,
	}
	if p.Text != nil {
		r.left = p.Text.Limit
	}
	if p.Nothing || q.Limit == 0 && !q.Count {
		r.left = 0
		return r, nil
	}
	if p.Text != nil {
		def, err := indexes.definition(p.Index, db.Meta().Partitioned)
		if err == nil {
			err = f.openText(r, def, m)
		}
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	if err := f.open(ctx, r); err != nil {
		return nil, err
	}
	if !q.Count && q.R > 1 {
		r.quorum = &rereading{rows: r, work: query.NewWork(ctx, f.o.Heavy), window: window.New(mostReread, m)}
	}
	return r, nil
}

// request returns the request that is sent to every copy.
func (r *Rows) request(n int) find.Request {
	q, p := r.find, r.plan
	req := find.Request{
		Selector: q.Selector.Append(nil), Fields: q.FieldList(), Desc: p.Desc, Conflicts: q.Conflicts,
		Plain: q.R > 1 && !q.Count, Count: q.Count, Parsed: &find.Parsed{Selector: q.Selector, Fields: q.Fields},
	}
	if !q.Count {
		limit := q.Limit
		if q.Stats { // they count the row behind the last one, see Rows.Stats
			limit = min(limit, math.MaxInt-1-q.Skip) + 1
		}
		req.Hint = quorum.Share(q.Skip, limit, n)
		if !req.Plain {
			req.Limit = q.Skip + limit
		}
	}
	for _, one := range p.Ranges {
		req.Ranges = append(req.Ranges, find.Range{Lo: one.Lo, Hi: one.Hi})
	}
	switch {
	case !p.Index.AllDocs():
		req.Index = &find.Index{
			Signature: r.of.Signature, Definition: r.of.Text, Design: r.of.Design, View: p.Index.Name,
			Update: view.UpdateNever, Partition: q.Partition,
		}
		if fresh(q) {
			req.Index.Update = view.UpdateBefore
		}
		if p.Covering {
			req.Index.Covering = p.Index.Names()
		}
	case q.Partition != "":
		req.Ranges = within(req.Ranges, q.Partition)
	}
	if p.After != nil {
		req.After = &find.Position{Sort: p.After.Sort, ID: p.After.ID}
	}
	return req
}

// fresh reports whether the answer has to have every edit that was acknowledged.
func fresh(q *plan.Find) bool { return q.Update && !q.StaleOK }

// within cuts ranges of ids to those of a partition.
func within(ranges []find.Range, partition string) []find.Range {
	lo, hi := []byte(partition+":"), []byte(partition+";") // no id of the partition is the latter
	if len(ranges) == 0 {
		return []find.Range{{Lo: lo, Hi: hi}}
	}
	out := make([]find.Range, 0, len(ranges))
	for _, r := range ranges {
		if slices.Compare(r.Lo, lo) < 0 {
			r.Lo = lo
		}
		if r.Hi == nil || slices.Compare(r.Hi, hi) > 0 {
			r.Hi = hi
		}
		if slices.Compare(r.Lo, r.Hi) <= 0 {
			out = append(out, r)
		}
	}
	return out
}

// open opens the rows of every range of the ring.
func (f *Finder) open(ctx context.Context, r *Rows) error {
	sources, err := r.db.Sources(r.find.Partition, fresh(r.find) || r.find.Stable || r.find.StaleOK)
	if err != nil {
		return err
	}
	req := r.request(len(sources))
	if len(req.Ranges) == 0 && len(r.plan.Ranges) > 0 { // none in the partition
		r.left = 0
		return nil
	}
	asked := r.db.Asking()
	limit, stall, patience := f.times(r)
	r.parts = make([]*part, len(sources))
	start := func(i int) error {
		p := &part{req: req}
		p.FailoverStream = fanout.FailoverStream[*find.Position, head, find.Batch]{
			Database: asked, Log: f.o.Logger, Ctx: ctx, Kind: p, Copies: sources[i],
			Limit: limit, Stall: stall, Patience: patience,
		}
		r.parts[i] = p
		return p.Start()
	}
	if req.Index == nil && here(asked.Node(), sources) { // opening is a matter of microseconds
		for i := range sources {
			if err == nil {
				err = start(i)
			}
		}
	} else {
		err = fanout.Each(len(sources), start)
	}
	if err != nil {
		r.Close()
		return asked.Explain(ctx, err)
	}
	return nil
}

// deciderPatience is how long the copy that decides edits is waited for before
// another one is asked as well: its index may have to be built, and another copy may
// lack an edit that was acknowledged. A node that cannot be reached is noticed at once.
const deciderPatience = 24 * time.Hour

// times returns how long opening a copy of another node may take, how long a batch,
// and when the next copy is asked as well.
func (f *Finder) times(r *Rows) (limit, stall, patience time.Duration) {
	set := f.o.Config.Load().Fabric
	limit, stall = set.AllDocsTimeout, set.AllDocsTimeout
	switch {
	case r.plan.Index.AllDocs():
		patience = limit / 2
	case r.find.Partition != "":
		limit, patience = set.PartitionViewTimeout, deciderPatience
	default:
		limit, patience = set.ViewTimeout, deciderPatience
	}
	if !fresh(r.find) {
		patience = 0
	}
	return limit, stall, patience
}

// here reports whether all first copies are on a node.
func here(node string, sources [][]ring.Replica) bool {
	return !slices.ContainsFunc(sources, func(copies []ring.Replica) bool { return len(copies) == 0 || copies[0].Node != node })
}
