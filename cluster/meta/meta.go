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
// Goroutines: Run owns those of hashicorp/raft, and those of its own, one per
// duty. The state machine is the only writer of the state; it runs on one of
// Raft's goroutines, and for callers that follow the leader.
//
// LOCKS: Meta.configMu → config.Holder's. stateMachine.mu → a Subscription's, the
// waiters', and, through the Holder, the Holder's, never configMu.
package meta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/storage/fault"
)

// Stores is where Raft keeps its log, its vote and its snapshots.
type Stores struct {
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
}

// Options is what a Meta is made of.
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

// Meta is one node's part of the group.
type Meta struct {
	opts Options
	log  *zap.Logger
	fsm  *stateMachine

	raft    atomic.Pointer[raft.Raft] // nil until Run has started it
	stores  atomic.Pointer[Stores]
	term    atomic.Uint64 // in which this node leads and has applied all that earlier leaders committed; 0: none
	removed atomic.Bool   // this node was a member and is none any more
	running atomic.Bool
	ready   chan struct{} // closed when the state is known for the first time
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when Run has returned
	onReady sync.Once
	onClose sync.Once

	catchUps  chan catchUp      // calls of CatchUp
	admitting chan struct{}     // has room for the one node that is being taken in
	refusals  map[string]string // node → why it was refused; belongs to who is in admitting

	// Each has room for one (pause.Turn). They are held while Raft works.
	configTurn  chan struct{} // a change of configuration made on this node
	versionTurn chan struct{} // a member that is added, until that is applied, or an operation that not every program knows, until Raft has it
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
	return &Meta{
		opts:  o,
		log:   o.Logger,
		fsm:   newStateMachine(o.Self.Name, o.Config),
		ready: make(chan struct{}),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),

		catchUps: make(chan catchUp),

		configTurn: make(chan struct{}, 1), versionTurn: make(chan struct{}, 1),
		admitting: make(chan struct{}, 1),
		refusals:  map[string]string{},
	}, nil
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
	g, err := m.open(ctx)
	if err != nil {
		if ctx.Err() != nil { // asked to stop before it had begun
			return nil
		}
		return err
	}
	m.raft.Store(g.raft)
	wg.Go(func() { m.serveCatchUps(ctx) })
	wg.Go(func() { m.maintainMembership(ctx, g.raft) })
	wg.Go(func() { m.persistApplied(ctx) })
	wg.Go(func() { m.keepCopy(ctx) })
	err = m.serve(ctx, g.raft)
	cancel()
	wg.Wait()
	return errors.Join(err, m.persistAppliedNow(), g.close())
}

// serve obeys Raft until ctx ends, then hands the lead over.
func (m *Meta) serve(ctx context.Context, r *raft.Raft) error {
	stopDuties := func() {}
	defer func() {
		stopDuties()
		m.transferLeadership(r)
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
			if err := m.becomeLeader(ctx, r); err != nil {
				return err
			}
			stopDuties = m.startLeaderDuties(ctx, r)
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
func (m *Meta) Ready() <-chan struct{} { return m.ready }

func (m *Meta) setReady() { m.onReady.Do(func() { close(m.ready) }) }

func (m *Meta) isReady() bool {
	select {
	case <-m.ready:
		return true
	default:
		return false
	}
}

// WaitReady waits for Ready. Its errors are that of ctx, and fault.Closed
// when the node stops first.
func (m *Meta) WaitReady(ctx context.Context) error {
	select {
	case <-m.ready:
		return nil
	case <-m.done:
		return errStopping()
	case <-ctx.Done():
		return fmt.Errorf("wait for metadata: %w", ctx.Err())
	}
}

func errStopping() error { return fault.New(fault.Closed, "The node is shutting down.") }

// Self returns the name of this node.
func (m *Meta) Self() string { return m.opts.Self.Name }

// Leader returns the name of the node that leads the group, as far as this one
// knows; empty when it knows of none.
func (m *Meta) Leader() string {
	r := m.raft.Load()
	if r == nil {
		return ""
	}
	_, id := r.LeaderWithID()
	return string(id)
}

// Voters returns the names of the nodes that vote, sorted.
func (m *Meta) Voters() []string {
	r := m.raft.Load()
	if r == nil {
		return nil
	}
	servers, err := members(r)
	if err != nil {
		return nil
	}
	var out []string
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			out = append(out, string(s.ID))
		}
	}
	slices.Sort(out)
	return out
}

// CommitIndex returns the number of the last entry of the log that this node
// knows to be committed; 0 before it takes part.
func (m *Meta) CommitIndex() uint64 {
	r := m.raft.Load()
	if r == nil {
		return 0
	}
	return r.CommitIndex()
}

// Applied returns the number of the last command that this node has applied.
func (m *Meta) Applied() uint64 { return m.fsm.load().index }

// alive reports whether a node is known to be there.
func (m *Meta) alive(node string) bool {
	return node == m.Self() || m.opts.Alive == nil || m.opts.Alive(node) || m.heardFrom(node)
}

// heardFrom reports whether Raft has heard of the leader a moment ago, which
// proves more than what others say about it.
func (m *Meta) heardFrom(leader string) bool {
	r := m.raft.Load()
	return r != nil && leader == m.Leader() && time.Since(r.LastContact()) < m.raftTimeout()
}

// quorumLost reports whether no majority can decide now, nor after an election.
// A leader finds out by itself, as fast.
func (m *Meta) quorumLost() bool {
	r := m.raft.Load()
	if r == nil {
		return true
	}
	servers, err := members(r)
	if err != nil || len(servers) == 0 {
		return true
	}
	if leader := m.Leader(); leader != "" && (leader == m.Self() || m.heardFrom(leader)) {
		return false
	}
	return !majorityAlive(servers, m.alive)
}

// UUID identifies the cluster: [couchdb] uuid where that is configured, else
// what the group made up when it was founded. It is empty before Ready.
func (m *Meta) UUID() string { return m.opts.Config.Load().CouchDB.UUID }

// Databases returns all databases as they are now on this node.
func (m *Meta) Databases() Databases { return m.fsm.load().dbs }

// Database returns a database as this node knows it now. One that is not
// found may have been created a moment ago through another node: CatchUp
// before answering that it does not exist.
func (m *Meta) Database(name string) (*Database, bool) { return m.fsm.load().dbs.Get(name) }

// Nodes returns the members of the cluster, sorted by name.
func (m *Meta) Nodes() []Node { return m.fsm.load().sortedNodes() }

// Node returns a member by name.
func (m *Meta) Node(name string) (Node, bool) {
	n, ok := m.fsm.load().nodes[name]
	return n, ok
}
