package reshard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/cluster/bandwidth"
	"divan/cluster/config"
	"divan/reshard/job"
	"divan/shard"
)

// Copies are those of this node: *shard.Copies.
type Copies interface {
	Has(name string) bool
	// ID returns which copy of its database a directory says that it is.
	ID(name string) (uint64, error)
	// Drop removes a copy.
	Drop(ctx context.Context, name string) error
}

// Clones makes copies of parts of other copies of this node: *shard.Clones.
type Clones interface {
	// Range gives a copy what another one has in a range, under the same sequences.
	// What it has already is not read again.
	Range(ctx context.Context, o shard.CloneOptions) (upto uint64, err error)
	// LocalDocs does the same with local documents.
	LocalDocs(ctx context.Context, o shard.CloneOptions) error
}

// Options configure a Resharder. All are required.
type Options struct {
	Node    string // this node
	Records Records
	Map     Map
	Copies  Copies
	Clones  Clones
	// Index brings the indexes of a copy of a database up to date.
	Index  func(ctx context.Context, db, copyName string) error
	Config *config.Holder
	Logger *zap.Logger
}

// Resharder works on the jobs of this node. It is safe for concurrent use.
//
// LOCKS: mu guards what is in it; nothing is called while it is held.
type Resharder struct {
	o     Options
	table *Table
	limit *bandwidth.Limit // of all clones
	wake  chan struct{}    // has one token when Run is to look

	mu struct {
		sync.Mutex
		works map[string]*work // by id of their job
	}
}

// New returns a resharder. Nothing is done before Run.
func New(o Options) (*Resharder, error) {
	if o.Node == "" || o.Records == nil || o.Map == nil || o.Copies == nil || o.Clones == nil || o.Index == nil || o.Config == nil || o.Logger == nil {
		return nil, errors.New("reshard: an option is missing")
	}
	r := &Resharder{o: o, table: NewTable(o.Records, o.Map, o.Config), wake: make(chan struct{}, 1)}
	r.limit = bandwidth.New(func() int64 { return o.Config.Load().Reshard.MaxBytesPerSecond })
	r.mu.works = map[string]*work{}
	return r, nil
}

// Table returns the jobs of the cluster.
func (r *Resharder) Table() *Table { return r.table }

// kind is the kind of work that a job needs.
type kind uint8

const (
	nothing kind = iota
	execute      // what it is for
	settle       // the job does not know yet that all are stopped or started
	undo         // it was removed, or its database was deleted
)

// kindOf returns what there is to do about a job; stopped: no job runs.
func (t *Table) kindOf(j *job.Job, stopped bool) kind {
	runs := j.State == job.New || j.State == job.Running
	switch {
	case !t.visible(j):
		return undo
	case runs && stopped, j.Disabled && j.State == job.Stopped && !stopped:
		return settle
	case runs:
		return execute
	}
	return nothing
}

// work is the work on a job, by one goroutine.
type work struct {
	r      *Resharder
	id     string
	kind   kind
	db     string
	cancel context.CancelFunc
	log    *zap.Logger
	task   task
}

// task is a work as _active_tasks shows it.
type task struct {
	source         string
	kind           job.Type
	step           atomic.Pointer[job.Step]
	done, total    atomic.Uint64
	began, updated atomic.Int64 // unix milliseconds
}

// Run works on jobs until ctx ends, and waits until that has stopped.
func (r *Resharder) Run(ctx context.Context) error {
	cancel := r.o.Config.Subscribe(func(_, _ *config.Snapshot) { r.poke() })
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		changed := r.o.Records.RecordsChanged()
		for _, w := range r.look(ctx) {
			running.Go(func() { r.work(w.ctx, w.work) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-r.wake:
		}
	}
}

// poke has Run look soon.
func (r *Resharder) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// starting is a work that begins.
type starting struct {
	*work
	ctx context.Context //nolint:containedctx // of the work
}

// look ends work on jobs that there is nothing, or something else, to do about, and returns
// what begins.
func (r *Resharder) look(ctx context.Context) (begin []starting) {
	stopped, entries, places := r.table.State().Stopped, r.table.entries(), r.o.Config.Load().Reshard.MaxJobs
	todo := map[string]kind{}
	var waiting []entry
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		k := r.table.kindOf(e.job, stopped)
		if k == nothing || e.job.Runner() != r.o.Node && !r.inherits(e.job) {
			continue
		}
		todo[e.id] = k
		if r.mu.works[e.id] == nil {
			waiting = append(waiting, e)
		}
	}
	for id, w := range r.mu.works {
		if w.kind != todo[id] {
			w.cancel()
		}
	}
	for len(waiting) > 0 {
		i := r.fairestLocked(waiting, todo, places)
		if i < 0 {
			break
		}
		e := waiting[i]
		waiting = slices.Delete(waiting, i, i+1)
		own, cancel := context.WithCancel(ctx)
		w := &work{r: r, id: e.id, kind: todo[e.id], db: e.job.Database, cancel: cancel, log: r.o.Logger.With(zap.String("shard", e.job.Name()))}
		w.task.source, w.task.kind = e.job.Name(), e.job.Type
		w.task.show(e.job.Step)
		r.mu.works[e.id] = w
		begin = append(begin, starting{w, own})
	}
	return begin
}

// inherits reports whether this node forgets a job of a deleted database whose own node is no member any more: each
// member does, and the first one succeeds.
func (r *Resharder) inherits(j *job.Job) bool {
	_, there := r.table.dbs.database(j)
	_, member := r.o.Map.Node(j.Runner())
	return !there && !member
}

// fairestLocked returns which of the jobs that wait is next, -1 for none: of the database
// that has the fewest at work the oldest one. So many jobs run at most; all else is done
// at once.
func (r *Resharder) fairestLocked(waiting []entry, todo map[string]kind, places int) int {
	running, ofDB := 0, map[string]int{}
	for _, w := range r.mu.works {
		if w.kind == execute {
			running++
			ofDB[w.db]++
		}
	}
	best := -1
	for i, e := range waiting {
		switch {
		case todo[e.id] != execute:
			return i
		case running >= places:
		case best < 0, cmp.Or(
			cmp.Compare(ofDB[e.job.Database], ofDB[waiting[best].job.Database]),
			cmp.Compare(e.job.Started, waiting[best].job.Started)) < 0:
			best = i
		}
	}
	return best
}

// work does what there is to do about a job.
func (r *Resharder) work(ctx context.Context, w *work) {
	defer func() {
		w.cancel()
		r.mu.Lock()
		delete(r.mu.works, w.id)
		r.mu.Unlock()
		r.poke()
	}()
	switch w.kind {
	case execute:
		w.execute(ctx)
	case settle:
		w.settle(ctx)
	case undo:
		w.undo(ctx)
	default:
	}
}

// show notes that the work has come to a step.
func (t *task) show(s job.Step) {
	now := time.Now().UnixMilli()
	if was := t.step.Load(); was != nil && *was == s {
		t.updated.Store(now)
		return
	}
	t.step.Store(&s)
	t.done.Store(0)
	t.total.Store(0)
	t.began.CompareAndSwap(0, now)
	t.updated.Store(now)
}

// progress notes how far the step is.
func (t *task) progress(done, total uint64) {
	t.done.Store(done)
	t.total.Store(total)
	t.updated.Store(time.Now().UnixMilli())
}

// Task is a job that is under way.
type Task struct {
	Job, Source          string
	Type                 job.Type
	Step                 job.Step
	Done, Total          uint64 // changes that the step has copied
	StartedMS, UpdatedMS int64  // unix time, milliseconds
}

// Tasks lists the jobs that this node works on, ordered by source.
func (r *Resharder) Tasks() []Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Task
	for id, w := range r.mu.works {
		if w.kind == execute {
			out = append(out, Task{
				Job: id, Source: w.task.source, Type: w.task.kind, Step: *w.task.step.Load(), Done: w.task.done.Load(), Total: w.task.total.Load(),
				StartedMS: w.task.began.Load(), UpdatedMS: w.task.updated.Load(),
			})
		}
	}
	slices.SortFunc(out, func(a, b Task) int { return cmp.Compare(a.Source, b.Source) })
	return out
}
