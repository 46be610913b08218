package meta

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"divan/storage/pause"
)

// persistEvery is how often a busy node writes down how far it has followed
// the group. What it did not write down, a start without a leader does not see.
const persistEvery = 250 * time.Millisecond

// committedKey is where the stable store has the number of the last command
// known to be committed. Raft itself does not remember that, so without a
// leader it would know the last snapshot only.
func committedKey() []byte { return []byte("divan_committed") }

// soleMemberKey is where the stable store has 1 when this node was the only one
// of its group. It makes starts faster and decides nothing.
func soleMemberKey() []byte { return []byte("divan_alone") }

// persistApplied writes down what was applied until ctx ends. A group of one does
// not need it: it always finds a leader.
func (m *Meta) persistApplied(ctx context.Context) {
	if m.opts.Transport == nil {
		return
	}
	for {
		select {
		case <-m.fsm.applied:
		case <-ctx.Done():
			return
		}
		if pause.For(ctx, persistEvery) != nil {
			return
		}
		if err := m.persistAppliedNow(); err != nil {
			m.fsm.fail(err)
			return
		}
	}
}

func (m *Meta) persistAppliedNow() error {
	s, r := m.stores.Load(), m.raft.Load()
	if s == nil || r == nil || m.opts.Transport == nil {
		return nil
	}
	if err := m.checkGroupID(*s); err != nil {
		return err
	}
	alone := uint64(0)
	if servers, err := members(r); err == nil && len(servers) == 1 && string(servers[0].ID) == m.Self() {
		alone = 1
	}
	if was := storedNumber(*s, soleMemberKey()); was != alone {
		if err := s.Stable.SetUint64(soleMemberKey(), alone); err != nil {
			return fmt.Errorf("write down whether there are others: %w", err)
		}
	}
	if err := s.Stable.SetUint64(committedKey(), m.fsm.load().index); err != nil {
		return fmt.Errorf("write down how far the metadata is known: %w", err)
	}
	return nil
}

// storedNumber reads a number of the stable store; 0 when it was never written,
// which stores report in different ways.
func storedNumber(s Stores, key []byte) uint64 {
	n, err := s.Stable.GetUint64(key)
	if err != nil {
		return 0
	}
	return n
}

// logStore returns this node's log, nil before Run has opened it.
func (m *Meta) logStore() raft.LogStore {
	if s := m.stores.Load(); s != nil {
		return s.Log
	}
	return nil
}
