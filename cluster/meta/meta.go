// Package meta is the cluster's memory of everything but documents: nodes,
// databases with their shard maps, security objects and limits, configuration,
// and which node owns which slots of work. One Raft group agrees on it, so that
// a create or a delete has one exact answer on every node.
//
// A change is a command (command.go) in the Raft log. The state machine
// (state_machine.go, state.go) applies it, deterministically. The state is a
// value whose parts are immutable, published through an atomic pointer after
// each batch of commands, so readers take no lock and see one moment. A call
// that changes something may be made on any node; it returns after this node
// has applied it.
//
// Documents never pass through here: without a majority, changes of metadata
// answer fault.Unavailable while the last known state can still be read.
//
// Each concern has a type with what it needs. Clients use Catalog (databases), Copies, Members
// (nodes), Configuration, SlotTable, RecordTable, Reader (having applied what was acknowledged) and
// Group (who leads and votes). Below them, proposer gets a command into the log, through the
// leader; leadership and admission are the leader's work, membership is this node's own.
//
// Goroutines: Run owns those of hashicorp/raft, and those of its own, one per
// duty. The state machine is the only writer of the state; it runs on one of
// Raft's goroutines, and for callers that follow the leader.
//
// LOCKS: Configuration.turn → config.Holder's. stateMachine.mu → a Subscription's, the
// waiters', and, through the Holder, the Holder's, never Configuration.turn.
package meta

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/storage/fault"
)

// Options configures a Meta.
type Options struct {
	// Dir is the directory for the log and the snapshots; it is made when it
	// does not exist. With an empty Dir everything is kept in memory.
	Dir string

	// CopyDir is where copies of the state are kept beside Dir, from which Recover
	// can make that again; empty: nowhere.
	CopyDir string

	// Stores overrides Dir, for tests that restart a node on the same stores.
	// The caller closes them.
	Stores *Stores

	// Self is this node as the cluster is to know it; its Name is also its
	// identity in Raft, so it cannot change later.
	Self Node

	// Bootstrap founds a group of one when there is no state yet and Found is
	// nil.
	Bootstrap bool

	// Found is asked how to begin when there is no state yet. It may take its
	// time, until its context ends.
	Found func(ctx context.Context) (BootstrapPlan, error)

	// Config gets the replicated layers of configuration. Required.
	Config *config.Holder

	// NodeDownAfter is how long another node may be silent before it counts as down; 0:
	// the usual. A longer time makes elections slower.
	NodeDownAfter time.Duration
	// Transport carries Raft's messages; its addresses are names of nodes. nil
	// suits a group of one. The caller closes it.
	Transport raft.Transport

	// Ask sends a request to another node, whose Meta.Answer answers it. An
	// error with a method NotSent() bool that says true promises that the
	// request never left this node. nil suits a group of one.
	Ask func(ctx context.Context, node string, request []byte) ([]byte, error)

	// OnGroupID is told the id of the group that this node is part of, before
	// Raft runs: it is the same on all members and differs from that of any
	// other group. nil suits a group of one.
	OnGroupID func(id string)

	// Alive reports what is known of another node right now, without waiting.
	// nil: all are taken for alive.
	Alive func(node string) bool

	// DiskFull returns an error while the disk of this node is full, which then
	// hands the lead over. nil: it never is.
	DiskFull func() error

	// Logger may be nil.
	Logger *zap.Logger
}

// Meta is one node's part of the group: it wires the types that each have a concern of it, starts
// and stops them, and says when the state is known.
type Meta struct {
	*Group   // the Raft group
	*Reader  // having applied all that was acknowledged
	*Catalog // databases
	*Copies  // of databases
	*Members // nodes

	Config  *Configuration
	Slots   *SlotTable
	Records *RecordTable

	fsm        *stateMachine
	proposer   *proposer
	membership *membership
	admission  *admission
	leadership *leadership
	applied    *appliedIndex
	copyKeeper *copyKeeper // nil: no copies of the state are kept
	bootstrap  *bootstrap

	ready   *readiness
	running atomic.Bool
	stop    chan struct{} // closed by Close
	onClose sync.Once
}

// New returns a Meta that does nothing before Run.
func New(o Options) (*Meta, error) {
	if o.Self.Name == "" {
		return nil, errors.New("metadata: a node needs a name")
	}
	if o.Config == nil {
		return nil, errors.New("metadata: no configuration to keep")
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	m := &Meta{Group: newGroup(&o), fsm: newStateMachine(o.Self.Name, o.Config), ready: newReadiness(), stop: make(chan struct{})}
	stores, log := &nodeStores{}, o.Logger
	m.proposer = &proposer{group: m.Group, fsm: m.fsm, stores: stores, ready: m.ready, versionTurn: make(chan struct{}, 1), log: log}
	m.Reader = &Reader{group: m.Group, fsm: m.fsm, stores: stores, calls: make(chan catchUp)}
	m.Catalog = &Catalog{fsm: m.fsm, proposer: m.proposer, reader: m.Reader}
	m.Copies = &Copies{fsm: m.fsm, proposer: m.proposer, stores: stores, log: log}
	m.Members = &Members{group: m.Group, fsm: m.fsm, proposer: m.proposer, reader: m.Reader}
	m.Config = &Configuration{group: m.Group, fsm: m.fsm, proposer: m.proposer, settings: o.Config, turn: make(chan struct{}, 1), log: log}
	m.Slots = &SlotTable{fsm: m.fsm, proposer: m.proposer}
	m.Records = &RecordTable{fsm: m.fsm, proposer: m.proposer}
	m.applied = &appliedIndex{group: m.Group, fsm: m.fsm, stores: stores}
	m.membership = &membership{group: m.Group, fsm: m.fsm, reader: m.Reader, config: m.Config, ready: m.ready, node: o.Self, log: log}
	m.admission = &admission{
		group: m.Group, fsm: m.fsm, proposer: m.proposer, applied: m.applied, turn: make(chan struct{}, 1), refusals: map[string]string{}, log: log,
	}
	m.leadership = &leadership{
		group: m.Group, fsm: m.fsm, proposer: m.proposer, stores: stores, membership: m.membership, admission: m.admission,
		copies: m.Copies, config: m.Config, ready: m.ready, diskFull: o.DiskFull, log: log,
	}
	m.bootstrap = &bootstrap{opts: o, group: m.Group, fsm: m.fsm, stores: stores, membership: m.membership}
	if o.CopyDir != "" {
		m.copyKeeper = &copyKeeper{copier: copier{dir: o.CopyDir}, fsm: m.fsm, log: log}
	}
	return m, nil
}

// Run takes part in the group until ctx ends or Close is called, which is no
// error. It returns an error when the state cannot be read or kept, and then
// the node must stop: it no longer knows what the cluster agreed on.
func (m *Meta) Run(ctx context.Context) (err error) {
	if !m.running.CompareAndSwap(false, true) {
		return errors.New("metadata: run twice")
	}
	defer close(m.done)
	defer m.fsm.closeSubscriptions()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		select {
		case <-m.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	defer cancel()
	g, err := m.bootstrap.open(ctx)
	if err != nil {
		if ctx.Err() != nil { // asked to stop before it had begun
			return nil
		}
		return err
	}
	m.raft.Store(g.raft)
	wg.Go(func() { m.Reader.serve(ctx) })
	wg.Go(func() { m.membership.maintain(ctx, g.raft) })
	wg.Go(func() { m.applied.keep(ctx) })
	if m.copyKeeper != nil {
		wg.Go(func() { m.copyKeeper.keep(ctx) })
	}
	err = m.serve(ctx, g.raft)
	cancel()
	wg.Wait()
	return errors.Join(err, m.applied.write(), g.close())
}

// serve obeys Raft until ctx ends, then hands the lead over.
func (m *Meta) serve(ctx context.Context, r *raft.Raft) error {
	stopDuties := func() {}
	defer func() {
		stopDuties()
		m.leadership.transfer(r)
		m.term.Store(0)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-m.fsm.fatal:
			return fmt.Errorf("metadata: %w", err)
		case leader := <-r.LeaderCh():
			m.term.Store(0)
			stopDuties()
			stopDuties = func() {}
			if !leader {
				continue
			}
			if err := m.leadership.become(ctx, r); err != nil {
				return err
			}
			stopDuties = m.leadership.startDuties(ctx, r)
		}
	}
}

// Close ends Run and waits for it.
func (m *Meta) Close() error {
	m.onClose.Do(func() { close(m.stop) })
	if m.running.Load() {
		<-m.done
	}
	return nil
}

// stopping reports whether Close was called.
func (m *Meta) stopping() bool {
	select {
	case <-m.stop:
		return true
	default:
		return false
	}
}

// Ready returns a channel that is closed once the state is known: this node
// has founded or rejoined its group and applied what the group had agreed on.
// When no leader is found for 5 s, a node that knows something is ready with
// that, since documents need no majority.
func (m *Meta) Ready() <-chan struct{} { return m.ready.known }

// WaitReady waits for Ready. Its errors are that of ctx, and fault.Closed
// when the node stops first.
func (m *Meta) WaitReady(ctx context.Context) error {
	select {
	case <-m.ready.known:
		return nil
	case <-m.done:
		return errStopping()
	case <-ctx.Done():
		return fmt.Errorf("wait for metadata: %w", ctx.Err())
	}
}

func errStopping() error { return fault.New(fault.Closed, "The node is shutting down.") }

// UUID identifies the cluster: [couchdb] uuid where that is configured, else
// what the group made up when it was founded. It is empty before Ready.
func (m *Meta) UUID() string { return m.Config.settings.Load().CouchDB.UUID }
