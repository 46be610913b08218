package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/bandwidth"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/cluster/meta/dbsetting"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Map is the part of the cluster's metadata that repair uses; *meta.Meta is one.
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

// Options configures a Repair. All are required but Logger, and Peers and Ask on a node that stands
// alone: there it brings those of its own copies in line whose ranges overlap.
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
	// Index brings the indexes of a copy up to date, before others leave for it; nil: there are none.
	Index func(ctx context.Context, db, copyName string) error
}

// Repair pushes what the copies of this node have to the copies of the same
// ranges on other nodes. It is safe for concurrent use.
type Repair struct {
	o         Options
	log       *zap.Logger
	bandwidth *bandwidth.Limit
	wake      chan struct{} // there is something new to decide
	work      sync.WaitGroup

	mu struct {
		sync.Mutex
		schedule *schedule
		entropy  antiEntropy
		tell     map[missing]struct{} // hints for other nodes that have not been sent
		synced   map[pair]uint64      // of the source: what the target is known to have
	}
	joins joins
}

// New returns a Repair that does nothing before Run; what it is told before
// that is kept.
func New(o Options) (*Repair, error) {
	if o.Node == "" || o.Meta == nil || o.Local == nil || o.Own == nil || o.Config == nil || (o.Peers == nil) != (o.Ask == nil) {
		return nil, errors.New("repair: Node, Meta, Local, Own and Config are required, and Ask with Peers")
	}
	r := &Repair{o: o, log: o.Logger, wake: make(chan struct{}, 1)}
	if r.log == nil {
		r.log = zap.NewNop()
	}
	r.bandwidth = bandwidth.New(func() int64 { return o.Config.Load().Repair.MaxBytesPerSecond })
	r.mu.schedule = newSchedule(o.Config.Load().Repair.SyncDelay, r.pairsFrom)
	r.mu.entropy = antiEntropy{self: o.Node, jitter: r.mu.schedule.jitter}
	r.mu.tell = make(map[missing]struct{})
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
	if r.o.Peers != nil {
		defer r.o.Peers.Subscribe(r.reached)()
	}
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
	var hints map[missing]struct{} // this function's own
	if len(r.mu.tell) > 0 {
		hints, r.mu.tell = r.mu.tell, make(map[missing]struct{})
	}
	r.mu.Unlock()
	for i, it := range begin {
		if idle[i] && r.copies(it.node) == nil {
			how := nodeAway
			if !slices.Contains(r.pairsFrom(it.copy), it.pair) { // it will not come back: another has its place
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
	pairs := r.pairsFrom(it.copy)
	db, _, _ := r.o.Meta.CopyIn(it.copy, r.o.Node)
	if db == nil || !slices.Contains(pairs, it.pair) {
		return vanished
	}
	cfg := r.o.Config.Load().Repair
	source := r.end(db, it.copy, r.o.Node, r.o.Own)
	target := r.end(db, it.target(), it.node, r.copies(it.node))
	limits := shard.Limits{Revs: db.Settings[dbsetting.RevsLimit], PurgedInfos: db.Settings[dbsetting.PurgedInfosLimit], Partitioned: db.Partitioned}
	p := &push{
		Copier: NewCopier(source, target, limits, r.log), local: r.o.Local, turn: cfg.BatchCount, followers: pairs,
		digest: func(ctx context.Context, since uint64, limit int, s seed) ([]byte, error) {
			return r.ask(ctx, it.node, message{Op: opDigest, Copy: it.target(), Since: since, Limit: limit, Seed: &s})
		},
	}
	p.batch, p.bandwidth, p.progress = cfg.BatchSize, r.bandwidth, it.progress
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.progress.stall = time.AfterFunc(stallTime, func() { cancel(errStalled) })
	defer p.progress.stall.Stop()
	role := r.role(db, it)
	if fence := (fence{role.fence, db.FullGeneration}); fence.of != 0 && it.drained != fence {
		// This node knows that the target joins, or the source leaves. What it lets in from here on
		// gets to the target by itself.
		if err := r.o.Local.Writes.Drain(ctx); err != nil {
			return failed
		}
		it.drained = fence
	}
	o, err := p.run(ctx)
	if err == nil {
		r.synced(it, &o)
	}
	if err == nil && !o.more && (role.fills || role.leaves) {
		err = r.taken(ctx, it, p, role)
	}
	return r.judge(ctx, it, &o, err)
}

// taken does what is left when a target has all documents of a source.
func (r *Repair) taken(ctx context.Context, it *item, p *push, role role) error {
	if role.leaves {
		r.joins.handedOver(joiner{it.copy, role.source}, role)
		return nil
	}
	if err := r.bringLocalDocs(ctx, it, p, role); err != nil {
		return err
	}
	return r.tellFilled(ctx, it.pair, role)
}

// bringLocalDocs makes the local documents of a target those of the source in whose place it comes. Of
// the others none brings any: each may have what a majority has deleted or replaced since.
func (r *Repair) bringLocalDocs(ctx context.Context, it *item, p *push, role role) error {
	span, _ := p.source.Intersect(p.target.Range)
	switch {
	case it.node == r.o.Node:
		return r.o.Local.Clones.LocalDocs(ctx, shard.CloneOptions{
			Source: it.copy, Target: it.target(), Range: span, Partitioned: p.limits.Partitioned,
		})
	case role.moved && it.locals != role.target: // from then on it gets each edit
		if err := p.copyLocalDocs(ctx); err != nil {
			return fmt.Errorf("local documents: %w", err)
		}
		it.locals = role.target
	}
	return nil
}

// role describes the work of a push besides bringing copies in line.
type role struct {
	source, target uint64 // ids of the copies
	known          uint64 // generation of the map that this node knows
	fills          bool   // a full copy fills a joining one
	leaves         bool   // a copy that leaves hands over to a full one
	moved          bool   // the joining one comes instead of the full one
	fence          uint64 // id of the one of which this node has to have heard before; 0: none
}

func (r *Repair) role(db *meta.Database, it *item) role {
	source, _ := db.Copy(it.copy, r.o.Node)
	target, there := db.Copy(it.target(), it.node)
	out := role{
		source: source.ID, target: target.ID, known: db.Generation,
		fills:  there && source.State == ring.StateFull && target.State == ring.StateJoining,
		leaves: there && source.State == ring.StateLeaving && target.State == ring.StateFull,
	}
	out.moved = out.fills && target.Instead == r.o.Node && it.to == ""
	switch {
	case out.fills:
		out.fence = target.ID
	case out.leaves:
		out.fence = source.ID
	}
	return out
}

// copies returns the copies of a node, nil when it cannot be reached.
func (r *Repair) copies(node string) replica.Copies {
	switch {
	case node == r.o.Node:
		return r.o.Own
	case r.o.Peers == nil:
		return nil
	default:
		return r.o.Peers.Copies(node)
	}
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
	rng, _, _, _ := ring.ParseCopyName(name)
	return End{Node: node, Name: name, Range: rng, Copy: replica.Copy{At: at, To: wire.Addressee{Copy: c.ID, Generation: db.Generation}}}
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
		r.log.Debug("push to another copy is tried again", zap.String("copy", it.copy), zap.String("node", it.node), zap.Error(err))
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
