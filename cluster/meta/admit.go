package meta

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/meta/metapb"
	"divan/cluster/meta/voters"
	"divan/storage/fault"
)

// admission is how a leader takes nodes in, and takes those out of Raft that are no members any more.
type admission struct {
	group    *Group
	fsm      *stateMachine
	proposer *proposer
	applied  *appliedIndex
	turn     chan struct{}     // has space for the one node that is being taken in
	refusals map[string]string // node → why it was refused; belongs to who is in turn
	log      *zap.Logger
}

// answer takes a node in, or asks the leader to.
func (d *admission) answer(ctx context.Context, from string, r *raft.Raft, j *metapb.Join) (*metapb.Answer, error) {
	if !j.Forwarded && from != j.Node.Name {
		return nil, fault.Newf(fault.BadRequest, "node %s cannot join for %s", from, j.Node.Name)
	}
	if r.State() != raft.Leader {
		if j.Forwarded {
			return nil, errNotProposed
		}
		j.Forwarded = true
		return d.group.askLeader(ctx, &metapb.Request{Question: &metapb.Request_Join{Join: j}})
	}
	err := d.admit(ctx, r, j)
	s := d.fsm.load()
	a := &metapb.Answer{Index: s.index, Term: s.term, Uuid: s.uuid, GroupId: s.groupID()}
	if fault.Is(err, fault.BadRequest) {
		a.Refusal = refusal(err)
		return a, nil
	}
	return a, err
}

// admit makes a node part of the group, as one that does not vote.
func (d *admission) admit(ctx context.Context, r *raft.Raft, j *metapb.Join) error {
	select {
	case d.turn <- struct{}{}: // one at a time
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.group.term.Load() == 0 {
		return errNotProposed
	}
	servers, err := members(r)
	if err != nil {
		return err
	}
	next := nodeFrom(j.Node)
	name := next.Name
	known, member := d.fsm.load().nodes[name]
	at := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == name })
	// One that Raft still has and the state no longer was dropped a moment ago.
	if err := refuse(j, d.fsm.load(), member); err != nil {
		if d.refusals[name] != err.Error() { // once, though it keeps asking
			d.refusals[name] = err.Error()
			d.log.Warn("refused a node", zap.String("node", name), zap.Error(err))
		}
		return err
	}
	delete(d.refusals, name)
	if at >= 0 && j.Fresh {
		if !voters.MajorityWithout(servers, name, d.group.alive) {
			return errUnavailable(nil)
		}
		if err := r.RemoveServer(raft.ServerID(name), 0, leadTimeout).Error(); err != nil {
			return raftError(err)
		}
		d.log.Info("a node comes back without its state", zap.String("node", name))
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
		if _, err := d.proposer.submit(ctx, c); err != nil {
			return err
		}
	}
	if member && next.ClusterVersion > known.ClusterVersion {
		if err := d.repeatVersions(ctx, name); err != nil {
			return err
		}
	}
	if at >= 0 {
		return nil
	}
	d.log.Info("a node joins", zap.String("node", name))
	if err := r.AddNonvoter(raft.ServerID(name), raft.ServerAddress(name), 0, leadTimeout).Error(); err != nil {
		return raftError(err)
	}
	return d.applied.write() // this node is not alone any more
}

// repeatVersions tells a node that was upgraded which versions the other members know:
// the program that it ran before may have skipped that.
func (d *admission) repeatVersions(ctx context.Context, upgraded string) error {
	for _, n := range d.fsm.load().sortedNodes() {
		if n.Name == upgraded || n.ClusterVersion == 0 {
			continue
		}
		c := alterNodeCommand(&metapb.AlterNode{Name: n.Name, ClusterVersion: &n.ClusterVersion})
		if _, err := d.proposer.submit(ctx, c); err != nil && !fault.Is(err, fault.NotFound) { // removed meanwhile
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

// removeNonMembers takes a server out of Raft that is no member any more: the leader that removed
// the member could not, for instance because it lost the lead in between. Autopilot keeps a voter
// as soon as two are left, and a group of two whose other voter has gone can decide nothing.
func (d *admission) removeNonMembers(ctx context.Context, r *raft.Raft) error {
	select {
	case d.turn <- struct{}{}: // who joins is a member first and in Raft after that
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return nil
	}
	// The servers are read before the members are: a server without a member
	// has lost it then.
	f := r.GetConfiguration()
	if err := f.Error(); err != nil {
		return fmt.Errorf("read the members of the group: %w", err)
	}
	servers := f.Configuration().Servers
	for _, s := range servers {
		if _, member := d.fsm.load().nodes[string(s.ID)]; member || d.group.term.Load() == 0 || !voters.MajorityWithout(servers, string(s.ID), d.group.alive) {
			continue
		}
		d.log.Info("a node that left is taken out of the Raft group", zap.String("node", string(s.ID)))
		return r.RemoveServer(s.ID, f.Index(), leadTimeout).Error() // one per round: the index has moved
	}
	return nil
}
