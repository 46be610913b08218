package meta

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/meta/metapb"
	"divan/storage/fault"
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

func (m *Meta) joinRequest(fresh bool) *metapb.Join {
	return &metapb.Join{Node: m.selfNode().proto(), Uuid: m.fsm.load().uuid, Fresh: fresh}
}

// joinThrough has a node without state taken in. It must happen before Raft
// runs: what this node may once have voted for is forgotten, so it must not
// vote before the group has stopped to count on it. The error is that of
// ctx or of the stores.
func (m *Meta) joinThrough(ctx context.Context, s Stores, seeds []string) error {
	again := time.NewTicker(joinEvery)
	defer again.Stop()
	said := ""
	for {
		for _, seed := range seeds {
			a, err := m.askJoin(ctx, seed, m.joinRequest(true))
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

// askJoin asks a node. A refusal is its fault.
func (m *Meta) askJoin(ctx context.Context, node string, j *metapb.Join) (*metapb.Answer, error) {
	if m.opts.Ask == nil {
		return nil, errNotProposed
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	a, err := m.ask(ctx, node, &metapb.Request{Question: &metapb.Request_Join{Join: j}})
	if err != nil {
		return nil, err
	}
	return a, refusalError(a.Refusal)
}

// answerJoin takes a node in, or asks the leader to.
func (m *Meta) answerJoin(ctx context.Context, from string, r *raft.Raft, j *metapb.Join) (*metapb.Answer, error) {
	if !j.Forwarded && from != j.Node.Name {
		return nil, fault.Newf(fault.BadRequest, "node %s cannot join for %s", from, j.Node.Name)
	}
	if r.State() != raft.Leader {
		if j.Forwarded {
			return nil, errNotProposed
		}
		j.Forwarded = true
		return m.askLeader(ctx, &metapb.Request{Question: &metapb.Request_Join{Join: j}})
	}
	err := m.admit(ctx, r, j)
	s := m.fsm.load()
	a := &metapb.Answer{Index: s.index, Term: s.term, Uuid: s.uuid, GroupId: s.groupID()}
	if fault.Is(err, fault.BadRequest) {
		a.Refusal = refusal(err)
		return a, nil
	}
	return a, err
}

// admit makes a node part of the group, as one that does not vote.
func (m *Meta) admit(ctx context.Context, r *raft.Raft, j *metapb.Join) error {
	select {
	case m.admitting <- struct{}{}: // one at a time
		defer func() { <-m.admitting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.term.Load() == 0 {
		return errNotProposed
	}
	servers, err := members(r)
	if err != nil {
		return err
	}
	next := nodeFrom(j.Node)
	name := next.Name
	known, member := m.Node(name)
	at := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == name })
	// One that Raft still has and the state no longer was dropped a moment ago.
	if err := refuse(j, m.fsm.load(), member); err != nil {
		if m.refusals[name] != err.Error() { // once, though it keeps asking
			m.refusals[name] = err.Error()
			m.log.Warn("refused a node", zap.String("node", name), zap.Error(err))
		}
		return err
	}
	delete(m.refusals, name)
	if at >= 0 && j.Fresh {
		if !majorityWithout(servers, name, m.alive) {
			return errUnavailable(nil)
		}
		if err := r.RemoveServer(raft.ServerID(name), 0, leadTimeout).Error(); err != nil {
			return raftError(err)
		}
		m.log.Info("a node comes back without its state", zap.String("node", name))
		at = -1
	}
	next.Draining = known.Draining
	if j.Fresh && next.Zone == "" { // it cannot know what it was told before
		next.Zone = known.Zone
	}
	c := &metapb.Command{Op: &metapb.Command_PutNode{PutNode: next.proto()}}
	if member { // and still one when this is carried out
		c = announce(next)
	}
	if !member || next != known {
		if _, err := m.submit(ctx, c); err != nil {
			return err
		}
	}
	if member && next.ClusterVersion > known.ClusterVersion {
		if err := m.repeatVersions(ctx, name); err != nil {
			return err
		}
	}
	if at >= 0 {
		return nil
	}
	m.log.Info("a node joins", zap.String("node", name))
	if err := r.AddNonvoter(raft.ServerID(name), raft.ServerAddress(name), 0, leadTimeout).Error(); err != nil {
		return raftError(err)
	}
	return m.persistAppliedNow() // this node is not alone any more
}

// repeatVersions tells a node that was upgraded which versions the other members know:
// its program of before skipped that.
func (m *Meta) repeatVersions(ctx context.Context, upgraded string) error {
	for _, n := range m.Nodes() {
		if n.Name == upgraded || n.ClusterVersion == 0 {
			continue
		}
		c := alterNodeCommand(&metapb.AlterNode{Name: n.Name, ClusterVersion: &n.ClusterVersion})
		if _, err := m.submit(ctx, c); err != nil && !fault.Is(err, fault.NotFound) { // removed meanwhile
			return err
		}
	}
	return nil
}

// refuse says why a node cannot be part of the cluster, nil if it can.
func refuse(j *metapb.Join, s *state, member bool) error {
	switch {
	case j.Uuid != "" && j.Uuid != s.uuid:
		return fault.Newf(fault.BadRequest, "node %s belongs to the cluster %s; this is the cluster %s", j.Node.Name, j.Uuid, s.uuid)
	case !j.Fresh && !member:
		return fault.Newf(fault.BadRequest, "node %s was removed from the cluster %s; it can join again with an empty data directory",
			j.Node.Name, s.uuid)
	}
	return s.welcome(j.Node.Name, j.Node.ClusterVersion)
}
