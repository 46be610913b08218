package rebalance

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/reshard"
	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Map is where copies are; *meta.Meta has it.
type Map interface {
	Databases() meta.Databases
	AddCopies(ctx context.Context, name string, id [16]byte, copies []ring.Addition) error
	ChangeCopies(ctx context.Context, changes []meta.CopyChange) error
}

// Group is the nodes that agree on that; *meta.Meta has it.
type Group interface {
	Nodes() []meta.Node
	// LeadTerm returns the term in which this node leads, 0 when it does not.
	LeadTerm() uint64
	RemoveNode(ctx context.Context, name string) error
}

// Options configure a Rebalancer. All are required: a node that stands alone has none.
type Options struct {
	Node    string // this node
	Map     Map
	Group   Group
	Records reshard.Records
	Table   *reshard.Table
	// Bytes returns what a copy of this node and its indexes have on the disk.
	Bytes  func(copyName string) (int64, error)
	Config *config.Holder
	Logger *zap.Logger
	// Ask sends a request to a service of another node.
	Ask   func(ctx context.Context, node, service string, request []byte) ([]byte, error)
	Alive func(node string) bool
	// Behind returns members whose programs do not know moves: nothing can be moved until they are upgraded.
	Behind func() []string
}

// Rebalancer moves copies while this node leads. It is safe for concurrent use.
type Rebalancer struct {
	o     Options
	sizes *sizer
}

// New returns a rebalancer. Nothing is moved before Run.
func New(o Options) (*Rebalancer, error) {
	if o.Node == "" || o.Map == nil || o.Group == nil || o.Records == nil || o.Table == nil || o.Bytes == nil || o.Config == nil ||
		o.Logger == nil || o.Ask == nil || o.Alive == nil || o.Behind == nil {
		return nil, errors.New("rebalance: an option is missing")
	}
	return &Rebalancer{o, &sizer{node: o.Node, dbs: o.Map, bytes: o.Bytes, ask: o.Ask, alive: o.Alive}}, nil
}

// Answer tells another node the sizes of copies of this one: the service "copy_sizes".
func (r *Rebalancer) Answer(_ context.Context, _ string, request []byte) ([]byte, error) {
	return r.sizes.answer(request)
}

const (
	// lookEvery is how often the leader looks when nothing is said to have changed, and lookPause how long it
	// waits after a look at least.
	lookEvery = 2 * time.Second
	lookPause = 100 * time.Millisecond
	// planEvery is how often it plans at most while something is under way. When a plan takes long, ten times that is
	// waited in any case.
	planEvery = 5 * time.Second
)

// lead is the state that the leader has gathered since it leads. It is local to the leader: times
// are of its monotonic clock.
type lead struct {
	term   uint64
	plan   time.Time // when the next plan may be made
	refill time.Time // likewise, while something is under way
	watch  watch
}

// Run moves copies while this node leads, until ctx ends.
func (r *Rebalancer) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for l := (&lead{}); ; {
		changed := r.o.Records.RecordsChanged()
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
		begin := time.Now()
		if err := r.look(ctx, l); err != nil && ctx.Err() == nil && !fault.Is(err, fault.Conflict) {
			r.o.Logger.Debug("copies are not rebalanced now", zap.Error(err))
		}
		pause.Reset(max(lookPause, 10*time.Since(begin)))
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-tick.C:
		}
	}
}

// look does what there is to do now.
func (r *Rebalancer) look(ctx context.Context, l *lead) error {
	term := r.o.Group.LeadTerm()
	if term != l.term {
		*l = lead{term: term}
	}
	if term == 0 {
		return nil
	}
	if err := r.Refusal(); err != nil {
		return err
	}
	if err := r.watch(ctx, &l.watch); err != nil {
		return err
	}
	s := r.load()
	if s.Record == nil || s.State != Running && len(s.Batch) == 0 {
		return nil
	}
	jobs := r.o.Table.Jobs()
	if err := r.removeJobs(ctx, r.orphans(jobs)); err != nil {
		return err
	}
	changed, pointless := s.settle(r.o.Map.Databases(), byID(jobs))
	if s.State == Cancelled {
		for i := range s.Batch {
			if !s.Batch[i].Lost { // a copy that is made anew stays needed
				pointless = append(pointless, s.Batch[i].JobID())
			}
		}
	}
	if err := r.removeJobs(ctx, pointless); err != nil {
		return err
	}
	now, done := time.Now(), changed && len(s.Batch) == 0
	if s.State != Running || now.Before(l.plan) || now.Before(l.refill) && !done {
		if changed {
			return r.save(ctx, &s)
		}
		return nil
	}
	return r.proceed(ctx, l, &s, jobs)
}

// orphans returns the jobs that no node is left to work on.
func (r *Rebalancer) orphans(jobs []*job.Job) (ids []string) {
	members := r.o.Group.Nodes()
	for _, j := range unfinished(jobs) {
		if !slices.ContainsFunc(members, func(n meta.Node) bool { return n.Name == j.Runner() }) {
			ids = append(ids, j.ID())
		}
	}
	return ids
}

func (r *Rebalancer) removeJobs(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if err := r.o.Table.Remove(ctx, id); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// proceed plans anew, begins moves, and notes when there is nothing left to move.
func (r *Rebalancer) proceed(ctx context.Context, l *lead, s *stored, jobs []*job.Job) error {
	begin := time.Now()
	p, err := r.plan(ctx, scope{leavingOnly: s.LeavingOnly}, jobs)
	now := time.Now()
	l.plan, l.refill = now.Add(10*now.Sub(begin)), now.Add(planEvery)
	if err != nil {
		return err
	}
	if len(p.giveUp) > 0 {
		if err := r.o.Map.ChangeCopies(ctx, p.giveUp); err != nil {
			return err
		}
		p.Waiting += len(p.giveUp) // the next plan knows what comes of that
	}
	s.withoutFailed(p)
	s.note(p)
	most := r.o.Config.Load().Reshard.MaxJobs / 2
	next := choose(p, s.Batch, most)
	s.Batch = append(s.Batch, next...)
	if s.Refused = ""; most == 0 {
		s.Refused = "[reshard] max_jobs is below 2"
	}
	if len(s.Batch) == 0 && len(p.Moves) == 0 && p.Waiting == 0 {
		s.end(p.Takers)
		r.o.Logger.Info("a rebalance is complete", zap.Int("moved", s.Moved.Copies), zap.Int64("bytes", s.Moved.Bytes), zap.Int("failed", s.Failed.Copies))
	}
	if len(s.Avoid) > maxFailed {
		s.State, s.Reason = Stopped, "Too many copies could not be moved: see failures."
		s.Avoid, next, s.Batch = nil, nil, s.Batch[:len(s.Batch)-len(next)]
	}
	// Before they are begun: so that none is under way of which no record tells.
	if err := r.save(ctx, s); err != nil {
		return err
	}
	return r.beginMoves(ctx, s, next)
}

// beginMoves begins the moves that were noted. Why some were not is noted then.
func (r *Rebalancer) beginMoves(ctx context.Context, s *stored, moves []Item) error {
	refused := ""
	for i := range moves {
		err := r.beginMove(ctx, &moves[i])
		if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			refused = cut(err.Error())
		}
	}
	if refused == "" {
		return nil
	}
	s.Refused = refused
	return r.save(ctx, s)
}

// end notes that there is nothing to move.
func (s *stored) end(takers []string) {
	if s.State = Completed; !s.LeavingOnly {
		s.Members = takers
	}
	switch {
	case s.Failed.Copies > 0:
		s.Reason = "Some copies could not be moved: see failures."
	case len(s.Left) > 0:
		s.Reason = "What is left cannot be mended by moves: see left."
	default:
		s.Reason = ""
	}
}

func byID(jobs []*job.Job) map[string]*job.Job {
	out := make(map[string]*job.Job, len(jobs))
	for _, j := range jobs {
		out[j.ID()] = j
	}
	return out
}

// beginMove begins a move. One that cannot be begun, because of what has changed since it was planned, is left to the
// next plan.
func (r *Rebalancer) beginMove(ctx context.Context, it *Item) error {
	db, ok := r.o.Map.Databases().Get(it.Database)
	if !ok || db.Suffix != it.Suffix {
		return nil
	}
	if it.Lost {
		return r.o.Map.AddCopies(ctx, db.Name, db.ID, []ring.Addition{{Range: it.Range, Node: it.To, Instead: it.From, Lost: true}})
	}
	return r.createJob(ctx, db, it)
}

func (r *Rebalancer) createJob(ctx context.Context, db *meta.Database, it *Item) error {
	c, there := it.shard(db).CopyOn(it.From)
	if !there {
		return nil
	}
	source, err := reshard.MoveOf(db, it.Range, c, it.To)
	if err != nil {
		return err
	}
	_, err = r.o.Table.Create(ctx, source)
	if !errors.Is(err, reshard.ErrJobExists) {
		return err
	}
	if old, failed := r.o.Table.Job(ctx, it.JobID()); failed == nil && old.State == job.Failed { // in an earlier rebalance
		if err := r.o.Table.Remove(ctx, it.JobID()); err != nil {
			return err
		}
		_, err = r.o.Table.Create(ctx, source)
	}
	return err
}
