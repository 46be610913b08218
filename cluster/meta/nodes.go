package meta

import (
	"context"
	"fmt"
	"maps"

	"divan/cluster/meta/metapb"
	"divan/cluster/meta/voters"
	"divan/shard/ring"
	"divan/storage/fault"
)

func errNoNode(name string) error { return fault.Newf(fault.NotFound, "no such node: %s", name) }

// putNode adds a member or changes one. Published maps are not written to.
func (s *state) putNode(n Node, e *effects) {
	s.nodes = maps.Clone(s.nodes)
	s.nodes[n.Name] = n
	e.nodes = true
}

func (s *state) alterNode(c *metapb.AlterNode, e *effects) result {
	n, ok := s.nodes[c.Name]
	if !ok {
		return result{err: errNoNode(c.Name)}
	}
	for _, text := range []struct{ old, next *string }{{&n.HTTP, c.Http}, {&n.RPC, c.Rpc}, {&n.Zone, c.Zone}, {&n.Version, c.Version}} {
		if text.next != nil {
			*text.old = *text.next
		}
	}
	if c.Draining != nil {
		n.Draining = *c.Draining
	}
	if c.ClusterVersion != nil {
		if err := s.welcome(c.Name, *c.ClusterVersion); err != nil {
			return result{err: err}
		}
		n.ClusterVersion = *c.ClusterVersion
	}
	s.putNode(n, e)
	return result{}
}

func (s *state) removeNode(name string, e *effects) result {
	if _, ok := s.nodes[name]; !ok {
		return result{err: errNoNode(name)}
	}
	s.nodes = maps.Clone(s.nodes)
	delete(s.nodes, name)
	e.nodes = true
	return result{}
}

func (s *state) replaceNode(c *metapb.ReplaceNode, e *effects) result {
	name, by := c.Name, c.By
	if _, member := s.nodes[name]; !member && !s.placed(name) {
		return result{err: errNoNode(name)}
	}
	if _, ok := s.nodes[by]; !ok {
		return result{err: errNoNode(by)}
	}
	if !c.Force {
		if err := s.dispensable(name); err != nil {
			return result{err: err}
		}
	}
	s.removeNode(name, e) // if it is one still
	s.changeMaps(func(db *Database) bool {
		shards, ok := ring.Replace(db.Shards, name, by, ring.IDsOf(s.index))
		if ok {
			db.Shards = shards
		}
		return ok
	}, e)
	return result{}
}

// dispensable refuses a node that may have an acknowledged edit which no majority of
// the other full copies has.
func (s *state) dispensable(node string) error {
	first, n := "", 0
	for db := range s.dbs.All() {
		if !ring.NodeDispensable(db.Shards, node) {
			if n++; n == 1 {
				first = db.Name
			}
		}
	}
	if n == 0 {
		return nil
	}
	what := fmt.Sprintf("database %q", first)
	if n > 1 {
		what = fmt.Sprintf("%d databases, the first is %q", n, first)
	}
	return fault.Newf(fault.Conflict, "%s has the only full copy of a range of %s, or one that others are still filled from. "+
		"Where copies join (_lost_shards) or move (_reshard/jobs), wait and try again. \"force\": true in the body gives up what only %s has.", node, what, node)
}

// placed reports whether the map of some database names a node.
func (s *state) placed(node string) bool {
	for db := range s.dbs.All() {
		for i := range db.Shards {
			if db.Shards[i].On(node) {
				return true
			}
		}
	}
	return false
}

// Members are the nodes of the cluster: what this node knows of them, and how they are changed
// and removed.
type Members struct {
	group    *Group
	fsm      *stateMachine
	proposer *proposer
	reader   *Reader
}

// Nodes returns the members of the cluster, sorted by name.
func (m *Members) Nodes() []Node { return m.fsm.load().sortedNodes() }

// Node returns a member by name.
func (m *Members) Node(name string) (Node, bool) {
	n, ok := m.fsm.load().nodes[name]
	return n, ok
}

// PutNode adds a member or changes what is known of it. It does not make the
// node take part: that begins when the node itself joins.
func (m *Members) PutNode(ctx context.Context, n Node) error {
	if n.Name == "" {
		return fault.New(fault.BadRequest, "a node needs a name")
	}
	_, err := m.proposer.propose(ctx, &metapb.Command{Op: &metapb.Command_PutNode{PutNode: n.proto()}})
	return err
}

// RemoveNode removes a member from the cluster; copies that the map places on it
// stay in the map. A node that was removed while it was away is refused when it
// comes back. fault.NotFound when it is not a member; fault.BadRequest when it
// is the last one.
func (m *Members) RemoveNode(ctx context.Context, name string) error {
	if err := m.checkRemovable(ctx, name); err != nil {
		return err
	}
	_, err := m.proposer.propose(ctx, &metapb.Command{Op: &metapb.Command_RemoveNode{RemoveNode: &metapb.RemoveNode{Name: name}}})
	return err
}

// ReplaceNode gives all copies of a node that is gone for good to a member and
// removes the first one, in one step. The copies there are new: they have to be
// filled. The node that is gone may have been removed before, as long as a map
// names it. fault.NotFound when none does, and when the other is not a member;
// fault.Conflict, unless force is set, when that gives something up: a range would be without
// a full copy, or others are still filled from the one that goes.
func (m *Members) ReplaceNode(ctx context.Context, old, by string, force bool) error {
	if old == by {
		return fault.New(fault.BadRequest, "a node cannot take its own place")
	}
	if err := m.checkRemovable(ctx, old); err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	_, err := m.proposer.propose(ctx, &metapb.Command{Op: &metapb.Command_ReplaceNode{ReplaceNode: &metapb.ReplaceNode{Name: old, By: by, Force: force}}})
	return err
}

// SetZone says in which zone a member stands. fault.NotFound when it is not a
// member.
func (m *Members) SetZone(ctx context.Context, name, zone string) error {
	_, err := m.proposer.propose(ctx, alterNodeCommand(&metapb.AlterNode{Name: name, Zone: &zone}))
	return err
}

// SetDraining says whether a member gets copies of new databases.
// fault.NotFound when it is not a member.
func (m *Members) SetDraining(ctx context.Context, name string, draining bool) error {
	_, err := m.proposer.propose(ctx, alterNodeCommand(&metapb.AlterNode{Name: name, Draining: &draining}))
	return err
}

func alterNodeCommand(c *metapb.AlterNode) *metapb.Command {
	return &metapb.Command{Op: &metapb.Command_AlterNode{AlterNode: c}}
}

// announce makes a command that has a member known as it says it is; whether it
// is draining stays.
func announce(n Node) *metapb.Command {
	return alterNodeCommand(&metapb.AlterNode{
		Name: n.Name, Http: &n.HTTP, Rpc: &n.RPC, Zone: &n.Zone, Version: &n.Version, ClusterVersion: &n.ClusterVersion,
	})
}

// checkRemovable refuses what the group would not outlive.
func (m *Members) checkRemovable(ctx context.Context, name string) error {
	if err := m.reader.CatchUp(ctx); err != nil {
		return err
	}
	if _, ok := m.Node(name); !ok {
		return errNoNode(name)
	}
	if len(m.fsm.load().nodes) == 1 {
		return fault.New(fault.BadRequest, "the last node of a cluster cannot be removed")
	}
	r := m.group.raft.Load()
	if r == nil {
		return errUnavailable(nil)
	}
	servers, err := members(r)
	if err != nil {
		return err
	}
	if !voters.MajorityWithout(servers, name, m.group.alive) {
		return fault.Newf(fault.BadRequest, "without %s no majority of the nodes that vote would be left; start the others first", name)
	}
	return nil
}

// NodesChanged returns a channel that is closed when a member comes, goes or
// changes after the call.
func (m *Members) NodesChanged() <-chan struct{} { return m.fsm.nodesChanged.Next() }
