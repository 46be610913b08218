package meta

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta/metapb"
)

// joinEvery is how often a new node asks again.
const joinEvery = time.Second

// BootstrapPlan says how a node without state begins.
type BootstrapPlan struct {
	// New founds a group of one.
	New bool

	// Seeds are nodes to join through; they are asked in turn until one takes
	// this node in.
	Seeds []string
}

func (m *membership) request(fresh bool) *metapb.Join {
	return &metapb.Join{Node: m.self().proto(), Uuid: m.fsm.load().uuid, Fresh: fresh}
}

// joinThrough has a node without state taken in. It must happen before Raft
// runs: what this node may once have voted for is forgotten, so it must not
// vote before the group has stopped to count on it. The error is that of
// ctx or of the stores.
func (m *membership) joinThrough(ctx context.Context, s Stores, seeds []string) error {
	again := time.NewTicker(joinEvery)
	defer again.Stop()
	said := ""
	for {
		for _, seed := range seeds {
			a, err := m.ask(ctx, seed, m.request(true))
			if err == nil {
				m.log.Info("joined a cluster", zap.String("through", seed), zap.String("uuid", a.Uuid))
				// What was given to this node before is gone with its state.
				return errors.Join(s.Stable.SetUint64(madeKey(), a.Index), storeGroupID(s, a.GroupId))
			}
			if text := seed + ": " + err.Error(); text != said && ctx.Err() == nil {
				said = text
				m.log.Warn("not taken in by the cluster yet", zap.String("through", seed), zap.Error(err))
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ask asks a node to be a member. A refusal is its fault.
func (m *membership) ask(ctx context.Context, node string, j *metapb.Join) (*metapb.Answer, error) {
	if m.group.send == nil {
		return nil, errNotProposed
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	a, err := m.group.ask(ctx, node, &metapb.Request{Question: &metapb.Request_Join{Join: j}})
	if err != nil {
		return nil, err
	}
	return a, refusalError(a.Refusal)
}
