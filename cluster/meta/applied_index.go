package meta

import (
	"context"
	"fmt"
	"time"

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

// appliedIndex writes down how far this node has followed the group, and whether it is alone.
type appliedIndex struct {
	group  *Group
	fsm    *stateMachine
	stores *nodeStores
}

// keep writes down what was applied until ctx ends. A group of one does
// not need it: it always finds a leader.
func (a *appliedIndex) keep(ctx context.Context) {
	if a.group.lone {
		return
	}
	for {
		select {
		case <-a.fsm.applied:
		case <-ctx.Done():
			return
		}
		if pause.For(ctx, persistEvery) != nil {
			return
		}
		if err := a.write(); err != nil {
			a.fsm.fail(err)
			return
		}
	}
}

func (a *appliedIndex) write() error {
	s, r := a.stores.Load(), a.group.raft.Load()
	if s == nil || r == nil || a.group.lone {
		return nil
	}
	if err := a.fsm.load().checkGroupID(*s); err != nil {
		return err
	}
	alone := uint64(0)
	if servers, err := members(r); err == nil && len(servers) == 1 && string(servers[0].ID) == a.group.self {
		alone = 1
	}
	if was := storedNumber(*s, soleMemberKey()); was != alone {
		if err := s.Stable.SetUint64(soleMemberKey(), alone); err != nil {
			return fmt.Errorf("write down whether there are others: %w", err)
		}
	}
	if err := s.Stable.SetUint64(committedKey(), a.fsm.load().index); err != nil {
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
