package peruser

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/replicator/ownership"
)

// Options configures a Keeper. All are required.
type Options struct {
	Coordinator *cluster.Coordinator
	Meta        *meta.Meta
	Config      *config.Holder
	Owners      *ownership.Table
	Logger      *zap.Logger
}

// Keeper keeps the databases of accounts while this node is to. It is safe for
// concurrent use.
type Keeper struct {
	o       Options
	log     *zap.Logger
	slot    int
	created atomic.Uint64
	deleted atomic.Uint64
	secured atomic.Uint64
	failed  atomic.Uint64
}

// New returns a Keeper; it does nothing before Run.
func New(o Options) *Keeper {
	return &Keeper{o: o, log: o.Logger, slot: ownership.Slot("couch_peruser")}
}

// Figures are numbers for the statistics of the node.
type Figures struct {
	Created  uint64 // databases
	Deleted  uint64 // databases
	Secured  uint64 // security objects that were changed
	Failures uint64 // attempts to do one of these
}

// Figures returns the numbers of now.
func (k *Keeper) Figures() Figures {
	return Figures{Created: k.created.Load(), Deleted: k.deleted.Load(), Secured: k.secured.Load(), Failures: k.failed.Load()}
}

// turn holds the settings and the ownership by which a node keeps databases. When they change, the
// node begins anew.
type turn struct {
	settings config.PerUser
	accounts string // the database of accounts
	term     uint64 // in which the slot is this node's; 0: it is not
}

func (t *turn) active() bool { return t.settings.Enable && t.term != 0 }

// turn returns the one of now.
func (k *Keeper) turn() turn {
	s := k.o.Config.Load()
	t := turn{settings: s.PerUser, accounts: s.ChttpdAuth.AuthenticationDB}
	if term, mine := k.o.Owners.Mine(k.slot); mine {
		t.term = term
	}
	return t
}

// Run keeps the databases of accounts whenever this node is to, until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	if err := k.o.Meta.WaitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	settings := make(chan struct{}, 1)
	unsubscribe := k.o.Config.Subscribe(func(_, _ *config.Snapshot) {
		select {
		case settings <- struct{}{}:
		default:
		}
	})
	defer unsubscribe()
	stop := func() {}
	defer func() { stop() }()
	for now := (turn{}); ; {
		changed := k.o.Owners.Changed()
		if t := k.turn(); t != now {
			stop()
			now, stop = t, k.begin(ctx, t)
		}
		select {
		case <-changed:
		case <-settings:
		case <-ctx.Done():
			return nil
		}
	}
}

// begin begins to keep databases, unless a turn says not to. stop ends it, and waits
// until it has.
func (k *Keeper) begin(ctx context.Context, t turn) (stop func()) {
	if !t.active() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.keep(ctx, t)
	}()
	return func() {
		cancel()
		<-ended
	}
}
