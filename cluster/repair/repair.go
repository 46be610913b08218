package repair

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Map is what repair has to know of the cluster; *meta.Meta is one.
type Map interface {
	WaitReady(ctx context.Context) error
	Databases() meta.Databases
	CopyIn(name, node string) (*meta.Database, ring.Copy, bool)
	ChangeCopies(ctx context.Context, changes []meta.CopyChange) error
	Node(name string) (meta.Node, bool)
}

// Peers is the other nodes.
type Peers interface {
	// Copies returns the copies of a node, nil when it cannot be reached now.
	Copies(node string) replica.Copies
	// Subscribe has f called whenever a node can be reached again or no longer.
	// f does not block.
	Subscribe(f func(node string, up bool)) (cancel func())
}

// Options are what a Repair is made of. All are required but Logger.
type Options struct {
	Node   string // this node, as the shard maps name it
	Meta   Map
	Local  *shard.Local
	Own    *replica.Local // the same
	Peers  Peers
	Config *config.Holder
	Logger *zap.Logger
	// Ask sends a request to a service of another node.
	Ask func(ctx context.Context, node, service string, request []byte) ([]byte, error)
}

// Repair pushes what the copies of this node have to the copies of the same
// ranges on other nodes. It is safe for concurrent use.
type Repair struct {
	o         Options
	log       *zap.Logger
	bandwidth bandwidth
	wake      chan struct{} // there is something new to decide
	work      sync.WaitGroup

	mu struct {
		sync.Mutex
		schedule *schedule
		entropy  antiEntropy
		tell     map[pair]struct{} // hints for other nodes that have not been sent
		synced   map[pair]uint64   // of the source: what the target is known to have
	}
	joins joins
}

// New returns a Repair that does nothing before Run; what it is told before
// that is kept.
func New(o Options) (*Repair, error) {
	if o.Node == "" || o.Meta == nil || o.Local == nil || o.Own == nil || o.Peers == nil || o.Config == nil || o.Ask == nil {
		return nil, errors.New("repair: Node, Meta, Local, Own, Peers, Config and Ask are required")
	}
	r := &Repair{o: o, log: o.Logger, wake: make(chan struct{}, 1)}
	if r.log == nil {
		r.log = zap.NewNop()
	}
	r.bandwidth.rate = func() int64 { return o.Config.Load().Repair.MaxBytesPerSecond }
	r.mu.schedule = newSchedule(o.Config.Load().Repair.SyncDelay, r.others)
	r.mu.entropy = antiEntropy{self: o.Node, jitter: r.mu.schedule.jitter}
	r.mu.tell = make(map[pair]struct{})
	r.mu.synced = make(map[pair]uint64)
	r.joins.byCopy = make(map[joiner]*joining)
	return r, nil
}

// Run pushes until ctx ends, and returns when the last push has ended.
func (r *Repair) Run(ctx context.Context) error {
	if err := r.o.Meta.WaitReady(ctx); err != nil {
		if ctx.Err() != nil || fault.Is(err, fault.Closed) {
			return nil
		}
		return err
	}
	defer r.work.Wait()
	cancel := r.o.Peers.Subscribe(r.reached)
	defer cancel()
	ctx = wire.ForRepair(ctx)
	r.mu.Lock()
	r.mu.entropy.begin("", true)
	r.mu.Unlock()
	r.work.Go(func() { r.keepJoining(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-timer.C:
		}
		if next := r.step(ctx); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// rouse makes Run decide again.
func (r *Repair) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// step starts what is due and returns when something may be due again.
func (r *Repair) step(ctx context.Context) time.Time {
	cfg := r.o.Config.Load().Repair
	now := time.Now()
	dbs := r.o.Meta.Databases()
	r.mu.Lock()
	s := r.mu.schedule
	s.delay = cfg.SyncDelay
	var compared time.Time
	if !s.full(now, cfg.SyncConcurrency) {
		var pairs []pair
		pairs, compared = r.mu.entropy.next(dbs, now)
		for _, p := range pairs {
			s.want(p, now)
		}
	}
	begin, next := s.start(now, cfg.SyncConcurrency)
	// Those that have nothing to do while their nodes are away. That is noted when
	// they are begun: their nodes may come back at any time.
	idle := make([]bool, len(begin))
	for i, it := range begin {
		idle[i] = it.away && it.progress.held
	}
	var hints map[pair]struct{} // this function's own
	if len(r.mu.tell) > 0 {
		hints, r.mu.tell = r.mu.tell, make(map[pair]struct{})
	}
	r.mu.Unlock()
	for i, it := range begin {
		if idle[i] && r.o.Peers.Copies(it.node) == nil {
			how := nodeAway
			if !slices.Contains(r.others(it.copy), it.node) { // it will not come back: another has its place
				how = vanished
			}
			r.ended(it, how)
			continue
		}
		r.work.Go(func() { r.ended(it, r.pushPair(ctx, it)) })
	}
	if len(hints) > 0 {
		r.work.Go(func() { r.passOn(ctx, opMissed, hints) })
	}
	if !compared.IsZero() && (next.IsZero() || compared.Before(next)) {
		next = compared
	}
	return next
}

// ended notes the end of a push.
func (r *Repair) ended(it *item, how ending) {
	r.mu.Lock()
	r.mu.schedule.done(it, how, time.Now())
	r.mu.Unlock()
	r.rouse()
}

// pushPair does one push of a pair.
func (r *Repair) pushPair(ctx context.Context, it *item) ending {
	db, nodes, ok := r.place(it.copy)
	if !ok || !slices.Contains(nodes, it.node) || !slices.Contains(nodes, r.o.Node) {
		return vanished
	}
	cfg := r.o.Config.Load().Repair
	source := r.end(db, it.copy, r.o.Node, r.o.Own)
	target := r.end(db, it.copy, it.node, r.o.Peers.Copies(it.node))
	limits := shard.Limits{Revs: db.RevsLimit, PurgedInfos: db.PurgedInfosLimit, Partitioned: db.Partitioned}
	p := &push{
		Copier: NewCopier(source, target, limits, r.log), local: r.o.Local, turn: cfg.BatchCount, holders: nodes,
		digest: func(ctx context.Context, since uint64, limit int, s seed) ([]byte, error) {
			return r.ask(ctx, it.node, message{Op: opDigest, Copy: it.copy, Since: since, Limit: limit, Seed: &s})
		},
	}
	p.batch, p.bandwidth, p.progress = cfg.BatchSize, &r.bandwidth, it.progress
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.progress.stall = time.AfterFunc(stallTime, func() { cancel(errStalled) })
	defer p.progress.stall.Stop()
	from, fills := r.fills(db, it)
	if target := p.target.Copy.To.Copy; fills && it.drained != target {
		// This node knows that the target joins. What it lets in from here on gets there by itself.
		if err := r.o.Local.Writes.Drain(ctx); err != nil {
			return failed
		}
		it.drained = target
	}
	o, err := p.run(ctx)
	if err == nil {
		r.synced(it, &o)
	}
	done := err == nil && !o.more
	if done && fills {
		err = r.tellFilled(ctx, it.pair, p.target.Copy.To.Copy, from)
	}
	return r.judge(ctx, it, &o, err)
}

// fills returns the id of the copy of this node that is pushed from, and whether it is a
// full copy and fills a joining one.
func (r *Repair) fills(db *meta.Database, it *item) (from uint64, ok bool) {
	source, _ := db.Copy(it.copy, r.o.Node)
	target, there := db.Copy(it.copy, it.node)
	return source.ID, there && source.State == ring.StateFull && target.State == ring.StateJoining
}

// synced keeps how far a target is.
func (r *Repair) synced(it *item, o *outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	it.behind = o.behind
	if _, known := r.mu.synced[it.pair]; known || len(r.mu.synced) < maxPairs {
		r.mu.synced[it.pair] = o.upto
	}
}

// end returns the copy of a database on a node as its map has it.
func (r *Repair) end(db *meta.Database, name, node string, at replica.Copies) End {
	c, _ := db.Copy(name, node)
	return End{Node: node, Name: name, Copy: replica.Copy{At: at, To: wire.Addressee{Copy: c.ID, Generation: db.Generation}}}
}

// errStalled ends a push that makes no progress.
var errStalled = errors.New("repair: the push makes no progress")

// judge turns what came of a push into an ending.
func (r *Repair) judge(ctx context.Context, it *item, o *outcome, err error) ending {
	switch {
	case err == nil && o.more:
		return turnOver
	case err == nil:
		return caughtUp
	case fault.Is(err, fault.NodeDown):
		return nodeAway
	case fault.Is(err, fault.NoCopy) && !r.holds(ctx, it.copy):
		return vanished
	case quiet(err) && !errors.Is(context.Cause(ctx), errStalled):
		return failed
	default:
		r.log.Warn("push to another copy failed", zap.String("copy", it.copy), zap.String("node", it.node), zap.Error(err))
		return failed
	}
}

// holds reports whether the copy is on this node's disk.
func (r *Repair) holds(ctx context.Context, name string) bool {
	_, _, err := r.o.Local.Position(ctx, name)
	return !fault.Is(err, fault.NoCopy)
}

// place returns the database of a copy and the nodes that hold its range, in
// the order of the map.
func (r *Repair) place(name string) (*meta.Database, []string, bool) {
	db, _, _ := r.o.Meta.CopyIn(name, r.o.Node)
	if db == nil {
		return nil, nil, false
	}
	for i := range db.Shards {
		if s := &db.Shards[i]; db.CopyName(s.Range) == name {
			return db, s.Nodes(), true
		}
	}
	return nil, nil, false
}

// others returns the other nodes with a copy of the range of a copy of this
// node.
func (r *Repair) others(name string) []string {
	_, nodes, ok := r.place(name)
	if !ok || !slices.Contains(nodes, r.o.Node) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return node == r.o.Node })
}

// reached is told that a node can be reached again, or no longer.
func (r *Repair) reached(node string, up bool) {
	if !up || node == r.o.Node {
		return
	}
	r.mu.Lock()
	r.mu.schedule.up(node, time.Now())
	r.mu.entropy.begin(node, true)
	r.mu.Unlock()
	r.rouse()
}
