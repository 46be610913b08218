package meta

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// How a node follows: it knows from the leader up to which entry of the log
// everything is committed, sooner than Raft's next message tells it. When it
// has that very entry (index and term), it has all before it too, by Raft's
// log matching, and may apply them at once. The same holds at the start for
// the entries that this node once knew to be committed. Raft hands these
// entries to the machine later, and the machine passes over them.

// applyPoll is the first pause before a node looks again for an entry that it
// does not have yet; the pauses double.
const applyPoll = time.Millisecond

// waiters are calls that wait until the machine has applied a command.
type waiters struct {
	mu   sync.Mutex
	list map[*waiter]struct{}
}

type waiter struct {
	index uint64
	done  chan struct{}
}

func (w *waiters) add(index uint64) *waiter {
	one := &waiter{index: index, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list == nil {
		w.list = map[*waiter]struct{}{}
	}
	w.list[one] = struct{}{}
	return one
}

func (w *waiters) remove(one *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.list, one)
}

// reached wakes every goroutine that waits for index or less.
func (w *waiters) reached(index uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.list {
		if one.index <= index {
			close(one.done)
			delete(w.list, one)
		}
	}
}

// waitApplied returns once the machine has applied the command at index, which
// the leader says is committed and was written in term (0: not known). log is
// this node's own. Its error is that of ctx.
func (m *stateMachine) waitApplied(ctx context.Context, log raft.LogStore, index, term uint64) error {
	if m.load().index >= index {
		return nil
	}
	one := m.waiters.add(index)
	defer m.waiters.remove(one)
	for wait := applyPoll; ; wait *= 2 {
		if term != 0 {
			m.applyCommitted(log, index, term)
		}
		if m.load().index >= index { // also when that was before it was added
			return nil
		}
		// The entry may be on its way: others were enough for a majority.
		select {
		case <-one.done:
			return nil
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("wait for metadata: %w", ctx.Err())
		}
	}
}

// applyCommitted applies what is committed up to index if it is all there, and
// if it is clear where that begins.
func (m *stateMachine) applyCommitted(log raft.LogStore, index, term uint64) {
	var last raft.Log
	if log.GetLog(index, &last) != nil || last.Term != term {
		return
	}
	now := m.load() // after the entry was found: a snapshot that came before it is restored
	if now.restored {
		return // Raft knows where the log goes on, and has it soon
	}
	// What cannot be read was compacted, so Raft has applied it.
	_ = m.applyUpTo(log, now.index+1, index)
}

// applyUpTo applies entries of the log that are known to be committed.
func (m *stateMachine) applyUpTo(log raft.LogStore, first, last uint64) error {
	for ; first <= last; first += maxAppend {
		entries, err := readLog(log, first, min(last, first+maxAppend-1))
		if err != nil {
			return err
		}
		m.ApplyBatch(entries)
	}
	return nil
}

// replay applies the entries behind a snapshot, which was taken at an entry of
// the log, up to index. It reports what cannot be read. What the log has up to
// the snapshot is not looked at: when the snapshot came from the leader, those
// entries can end before it, or never have been committed.
func (m *stateMachine) replay(log raft.LogStore, snapshot, index uint64) error {
	last, err := log.LastIndex()
	if err != nil {
		return fmt.Errorf("read the log of the metadata: %w", err)
	}
	return m.applyUpTo(log, max(snapshot, m.load().index)+1, min(index, last))
}

// readLog returns the entries from first to last.
func readLog(log raft.LogStore, first, last uint64) ([]*raft.Log, error) {
	var out []*raft.Log
	for i := first; i <= last; i++ {
		entry := &raft.Log{}
		if err := log.GetLog(i, entry); err != nil {
			return nil, fmt.Errorf("read entry %d of the log of the metadata: %w", i, err)
		}
		out = append(out, entry)
	}
	return out, nil
}
