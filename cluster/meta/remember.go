package meta

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// rememberEvery is how often a busy node writes down how far it has followed
// the group. What it did not write down, a start without a leader does not see.
const rememberEvery = 250 * time.Millisecond

// committedKey is where the stable store has the number of the last command
// known to be committed. Raft itself does not remember that, so without a
// leader it would know the last snapshot only.
func committedKey() []byte { return []byte("divan_committed") }

// aloneKey is where the stable store has 1 when this node was the only one of
// its group. It makes starts faster and decides nothing.
func aloneKey() []byte { return []byte("divan_alone") }

// remember writes down what was applied until ctx ends. A group of one does
// not need it: it always finds a leader.
func (m *Meta) remember(ctx context.Context) {
	if m.opts.Transport == nil {
		return
	}
	for {
		select {
		case <-m.fsm.moved:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(rememberEvery):
		case <-ctx.Done():
			return
		}
		if err := m.rememberNow(); err != nil {
			m.fsm.fail(err)
			return
		}
	}
}

func (m *Meta) rememberNow() error {
	s, r := m.stores.Load(), m.raft.Load()
	if s == nil || r == nil || m.opts.Transport == nil {
		return nil
	}
	if err := m.checkOrigin(*s); err != nil {
		return err
	}
	alone := uint64(0)
	if servers, err := members(r); err == nil && len(servers) == 1 && string(servers[0].ID) == m.Self() {
		alone = 1
	}
	if was := recall(*s, aloneKey()); was != alone {
		if err := s.Stable.SetUint64(aloneKey(), alone); err != nil {
			return fmt.Errorf("write down whether there are others: %w", err)
		}
	}
	if err := s.Stable.SetUint64(committedKey(), m.fsm.load().index); err != nil {
		return fmt.Errorf("write down how far the metadata is known: %w", err)
	}
	return nil
}

// recall reads a number of the stable store; 0 when it was never written, which
// stores report in different ways.
func recall(s Stores, key []byte) uint64 {
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
