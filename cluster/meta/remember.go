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
	s := m.stores.Load()
	if s == nil || m.opts.Transport == nil {
		return nil
	}
	if err := s.Stable.SetUint64(committedKey(), m.fsm.load().index); err != nil {
		return fmt.Errorf("write down how far the metadata is known: %w", err)
	}
	return nil
}

// logStore returns this node's log, nil before Run has opened it.
func (m *Meta) logStore() raft.LogStore {
	if s := m.stores.Load(); s != nil {
		return s.Log
	}
	return nil
}
