package ownership

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/storage/fault"
	"divan/storage/pause"
)

// ErrLost says that a slot has another owner now, or none.
var ErrLost = errors.New("the replication belongs to another node now")

// Options configures a Table.
type Options struct {
	// Meta is this node's part of the group. Required.
	Meta *meta.Meta

	// Alive reports what is known of another node right now, without waiting.
	// nil: all are taken for alive.
	Alive func(node string) bool

	// Logger may be nil.
	Logger *zap.Logger
}

// Owner is the owner of a slot.
type Owner struct {
	Node string
	Term uint64 // index of the Raft entry that made it so; grows with every change
}

// Table is one node's view of who owns the slots. On the node that leads the
// group it also moves them.
type Table struct {
	opts Options
	meta *meta.Meta
	log  *zap.Logger

	// The lease: what the group confirmed last, in nanoseconds of the monotonic
	// clock since base. 0: never.
	base  time.Time
	asked atomic.Int64

	mu      sync.Mutex
	changed chan struct{} // closed at the next change
}

// New returns a Table that owns nothing before Run.
func New(o Options) *Table {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Alive == nil {
		o.Alive = func(string) bool { return true }
	}
	return &Table{opts: o, meta: o.Meta, log: o.Logger, base: time.Now(), changed: make(chan struct{})}
}

// Run keeps this node's ownership confirmed, and moves slots while it leads,
// until ctx ends.
func (t *Table) Run(ctx context.Context) error {
	if err := t.meta.WaitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { t.forwardChanges(ctx) })
	wg.Go(func() { t.lead(ctx) })
	t.keepLease(ctx)
	return nil
}

// Owner returns the owner of a slot, as far as this node knows; false when there is none.
func (t *Table) Owner(slot int) (Owner, bool) {
	s := t.meta.Slots.Owners()[slot]
	return Owner(s), s.Node != ""
}

// Mine returns the term in which this node owns a slot. It is false also when
// this node has not heard of the group for so long that another one may own the
// slot.
func (t *Table) Mine(slot int) (term uint64, ok bool) {
	s := t.meta.Slots.Owners()[slot]
	return s.Term, s.Node == t.meta.Self() && t.leaseHolds()
}

// Changed returns a channel that is closed when what Owner and Mine say may
// differ from what they said before the call.
func (t *Table) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

func (t *Table) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.changed)
	t.changed = make(chan struct{})
}

// Check asks the group whether this node owns a slot in a term, and returns nil when it did at a
// moment during the call. ErrLost says that it does not any more and never will in that term; other
// errors that the group cannot tell. While no other node can own the slot yet, it asks again: an
// election is no reason to give up.
func (t *Table) Check(ctx context.Context, slot int, term uint64) error {
	for {
		err := t.confirm(ctx)
		if s := t.meta.Slots.Owners()[slot]; s.Node != t.meta.Self() || s.Term != term {
			return ErrLost
		}
		if err == nil || !fault.Is(err, fault.Unavailable) || !t.leaseHolds() {
			return err
		}
		if err := pause.For(ctx, askAgain); err != nil {
			return err
		}
	}
}

// forwardChanges tells of slots that changed hands.
func (t *Table) forwardChanges(ctx context.Context) {
	for ctx.Err() == nil {
		next := t.meta.Slots.Changed() // before telling: what happens after is told the next time
		t.tell()
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}
