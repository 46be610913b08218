package meta

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"divan/cluster/broadcast"
	"divan/cluster/config"
	"divan/storage/fault"
)

// stateMachine is Raft's state machine. Raft calls ApplyBatch, Apply, Snapshot
// and Restore on one goroutine; callers that know from the leader what is
// committed (apply.go) call ApplyBatch too.
type stateMachine struct {
	self         string
	versions     versions
	config       *config.Holder
	subs         subscribers
	current      atomic.Pointer[state]
	fatal        chan error // gets the first reason why the state cannot be followed further
	waiters      waiters
	applied      chan struct{}       // has one token when commands were applied
	toCopy       chan struct{}       // likewise, for copyKeeper
	nodesChanged broadcast.Broadcast // of changed nodes
	slotsChanged broadcast.Broadcast // of slots that changed hands
	recordPut    broadcast.Broadcast // of records that were written or removed

	tombstones atomic.Pointer[tombstones]

	mu     sync.Mutex // held while commands are applied
	failed error
}

var _ raft.BatchingFSM = (*stateMachine)(nil)

var errRewritten = errors.New("the history of the metadata was rewritten")

func newStateMachine(self string, c *config.Holder) *stateMachine {
	m := &stateMachine{self: self, versions: newVersions(), config: c, fatal: make(chan error, 1), applied: make(chan struct{}, 1), toCopy: make(chan struct{}, 1)}
	m.tombstones.Store(newTombstones())
	m.current.Store(newState())
	return m
}

func (m *stateMachine) load() *state { return m.current.Load() }

// Apply implements raft.FSM.
func (m *stateMachine) Apply(l *raft.Log) any { return m.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM: the commands become visible together.
// Those that were applied before are passed over.
func (m *stateMachine) ApplyBatch(logs []*raft.Log) []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := *m.load()
	var e effects
	out := make([]any, len(logs))
	for i, l := range logs {
		switch {
		case l.Index <= next.index:
			m.checkApplied(&next, l)
		case l.Type == raft.LogCommand:
			out[i] = m.applyOne(&next, l, &e)
		}
	}
	if m.failed != nil {
		return out
	}
	m.publish(&next, e)
	return out
}

// checkApplied looks at an entry up to the last command applied. Terms never fall
// along one log, so a newer term there, or another one at the very command, is
// that of a log which does not have what was applied: a majority has forgotten
// acknowledged commands. That stops the machine for good too.
func (m *stateMachine) checkApplied(now *state, l *raft.Log) {
	known := l.Term != 0 && now.term != 0
	if m.failed != nil || !known || l.Term == now.term || (l.Term < now.term && l.Index < now.index) {
		return
	}
	m.failed = fmt.Errorf("%w: log entry %d is of term %d, but up to entry %d of term %d was applied; "+
		"was another node set back to a backup?", errRewritten, l.Index, l.Term, now.index, now.term)
	m.fail(m.failed)
}

// applyOne applies one entry. An entry that cannot be read stops the machine
// for good rather than let this node's state drift away from the others'.
func (m *stateMachine) applyOne(next *state, l *raft.Log, e *effects) result {
	if m.failed == nil {
		c, err := decodeCommand(l.Data)
		if err == nil {
			n := len(e.events)
			next.index, next.term, next.restored = l.Index, l.Term, false
			next.clusterVersion = max(next.clusterVersion, m.versions.needed(c.Command))
			res := next.apply(c, m.tombstones.Load(), e)
			res.index, res.term = l.Index, l.Term
			for i := range e.events[n:] {
				e.events[n+i].Index = l.Index
			}
			return res
		}
		m.failed = fmt.Errorf("apply log entry %d: %w", l.Index, err)
		m.fail(m.failed)
	}
	return result{err: fault.Wrap(fault.Corruption, "The metadata of the cluster cannot be followed.", m.failed)}
}

// fail has the node stop; the first reason counts.
func (m *stateMachine) fail(err error) {
	select {
	case m.fatal <- err:
	default:
	}
}

// failure returns why the state cannot be followed; nil as long as it can.
func (m *stateMachine) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

// publish makes a state the current one, and only then tells of it.
func (m *stateMachine) publish(next *state, e effects) {
	m.current.Store(next)
	if e.config {
		own := next.perNode[m.self].Clone()
		delete(own.Set, adminHashSection)
		m.config.SetReplicated(next.generated(), next.cluster, own)
	}
	if e.lagged {
		m.subs.lag()
	} else {
		m.subs.publish(e.events)
	}
	if e.nodes {
		m.nodesChanged.Tell()
	}
	if e.slots {
		m.slotsChanged.Tell()
	}
	if e.record {
		m.recordPut.Tell()
	}
	m.waiters.reached(next.index)
	for _, c := range [...]chan struct{}{m.applied, m.toCopy} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (m *stateMachine) closeSubscriptions() { m.subs.close() }

// Snapshot implements raft.FSM. It copies what later commands change in place.
func (m *stateMachine) Snapshot() (raft.FSMSnapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed != nil {
		return nil, m.failed
	}
	return &snapshot{state: m.load(), tombstones: m.tombstones.Load().clone()}, nil
}

// Restore implements raft.FSM. A snapshot of less than what was applied already
// changes nothing; one of another history stops the machine.
func (m *stateMachine) Restore(r io.ReadCloser) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	s, t, err := readSnapshot(bufio.NewReaderSize(r, snapshotBuffer))
	if err != nil {
		return fmt.Errorf("restore metadata: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.clusterVersion > m.versions.known {
		m.failed = errNewer(s.clusterVersion, m.versions.known)
		m.fail(m.failed)
		return m.failed
	}
	if now := m.load(); s.index < now.index {
		m.checkApplied(now, &raft.Log{Index: s.index, Term: s.term})
		return m.failed
	}
	s.restored = true
	m.tombstones.Store(t)
	m.publish(s, effects{config: true, nodes: true, slots: true, record: true, lagged: true})
	return nil
}
