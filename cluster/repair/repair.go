package repair

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/bandwidth"
	"divan/cluster/config"
	"divan/cluster/meta"
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
	config    *config.Holder
	local     *shard.Local
	layout    *layout
	messenger *messenger
	pusher    *pusher
	joins     *joins
	log       *zap.Logger
	wake      chan struct{} // there is something new to decide
	work      sync.WaitGroup

	mu struct {
		sync.Mutex
		schedule *schedule
		entropy  antiEntropy
		tell     map[missing]struct{} // hints for other nodes that have not been sent
		synced   map[pair]uint64      // of the source: what the target is known to have
	}
}

// New returns a Repair that does nothing before Run; what it is told before
// that is kept.
func New(o Options) (*Repair, error) {
	if o.Node == "" || o.Meta == nil || o.Local == nil || o.Own == nil || o.Config == nil || (o.Peers == nil) != (o.Ask == nil) {
		return nil, errors.New("repair: Node, Meta, Local, Own and Config are required, and Ask with Peers")
	}
	log := o.Logger
	if log == nil {
		log = zap.NewNop()
	}
	r := &Repair{config: o.Config, local: o.Local, log: log, wake: make(chan struct{}, 1)}
	r.layout = &layout{node: o.Node, meta: o.Meta, own: o.Own, peers: o.Peers}
	r.messenger = &messenger{node: o.Node, answer: r.Answer, remote: o.Ask, log: log}
	r.joins = &joins{
		node: o.Node, meta: o.Meta, local: o.Local, index: o.Index, messenger: r.messenger, work: &r.work, log: log,
		byCopy: make(map[joiner]*joining),
	}
	r.pusher = &pusher{
		layout: r.layout, messenger: r.messenger, joins: r.joins, local: o.Local, config: o.Config, synced: r.synced, log: log,
		bandwidth: bandwidth.New(func() int64 { return o.Config.Load().Repair.MaxBytesPerSecond }),
	}
	r.mu.schedule = newSchedule(o.Config.Load().Repair.SyncDelay, r.layout.pairsFrom)
	r.mu.entropy = antiEntropy{self: o.Node, jitter: r.mu.schedule.jitter}
	r.mu.tell = make(map[missing]struct{})
	r.mu.synced = make(map[pair]uint64)
	return r, nil
}

// Run pushes until ctx ends, and returns when the last push has ended.
func (r *Repair) Run(ctx context.Context) error {
	if err := r.layout.meta.WaitReady(ctx); err != nil {
		if ctx.Err() != nil || fault.Is(err, fault.Closed) {
			return nil
		}
		return err
	}
	defer r.work.Wait()
	if r.layout.peers != nil {
		defer r.layout.peers.Subscribe(r.reached)()
	}
	ctx = wire.ForRepair(ctx)
	r.mu.Lock()
	r.mu.entropy.begin("", true)
	r.mu.Unlock()
	r.work.Go(func() { r.joins.run(ctx) })
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
	cfg := r.config.Load().Repair
	now := time.Now()
	dbs := r.layout.meta.Databases()
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
		if idle[i] && r.layout.copies(it.node) == nil {
			how := nodeAway
			if !slices.Contains(r.layout.pairsFrom(it.copy), it.pair) { // it will not come back: another has its place
				how = vanished
			}
			r.ended(it, how)
			continue
		}
		r.work.Go(func() { r.ended(it, r.pusher.push(ctx, it)) })
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

// synced keeps how far a target is.
func (r *Repair) synced(it *item, o *outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	it.behind = o.behind
	if _, known := r.mu.synced[it.pair]; known || len(r.mu.synced) < maxPairs {
		r.mu.synced[it.pair] = o.upto
	}
}

// reached is told that a node can be reached again, or no longer.
func (r *Repair) reached(node string, up bool) {
	if !up || node == r.layout.node {
		return
	}
	r.mu.Lock()
	r.mu.schedule.up(node, time.Now())
	r.mu.entropy.begin(node, true)
	r.mu.Unlock()
	r.rouse()
}
