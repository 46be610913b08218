package rebalance

import (
	"context"
	"slices"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/reshard/placer"
	"divan/shard/ring"
)

// Plan lists the moves that would be made now.
type Plan struct {
	Moves    []Move // in the order in which they are begun
	Left     []Left // copies and nodes that the plan leaves as they should not be
	Nodes    []Node
	Bytes    int64    // that move
	MustMove int64    // a lower bound of what any plan moves that brings each node within the tolerance
	Away     []string // members that do not answer: nothing moves from or to them
	Waiting  int      // copies that have to leave their nodes, and cannot yet
	Takers   []string // members that take copies, sorted
	giveUp   []meta.CopyChange
}

// Move is a copy that goes to another node.
type Move struct {
	DB     *meta.Database
	Range  ring.Range
	From   string
	To     string
	Bytes  int64
	Reason placer.Reason
}

// Left is a copy or a node that is not as it should be, and stays so.
type Left struct {
	DB     *meta.Database // nil: it is about a node
	Range  ring.Range     // of the copy
	Node   string
	Reason placer.Reason
	Why    placer.Why
	Bytes  int64 // of the copy; of a node: how far it is beyond the tolerance
}

// Node is a node with its bytes.
type Node struct {
	Name, Zone string
	Draining   bool
	Member     bool
	placer.NodeBytes
}

// scope is the purpose of a plan.
type scope struct {
	leavingOnly bool   // only what has to leave its node is moved
	drained     string // a member that is taken for one that is drained
	without     string // a member that is taken for one that is no more
}

// Plan says what a rebalance would move now. leavingOnly: only what has to leave its node.
func (r *Rebalancer) Plan(ctx context.Context, leavingOnly bool) (*Plan, error) {
	return r.plan(ctx, scope{leavingOnly: leavingOnly}, r.o.Table.Jobs())
}

// PlanDrain says what is moved when a member is drained, whether it is yet or not.
func (r *Rebalancer) PlanDrain(ctx context.Context, node string) (*Plan, error) {
	return r.plan(ctx, scope{leavingOnly: true, drained: node}, r.o.Table.Jobs())
}

// plan leaves alone what jobs have to do with that have not ended.
func (r *Rebalancer) plan(ctx context.Context, of scope, jobs []*job.Job) (*Plan, error) {
	f := &facts{members: slices.Clone(r.o.Group.Nodes()), jobs: unfinished(jobs), placement: r.o.Config.Load().Cluster.Placement}
	f.members = slices.DeleteFunc(f.members, func(n meta.Node) bool { return n.Name == of.without })
	for i := range f.members {
		if f.members[i].Name == of.drained {
			f.members[i].Draining = true
		}
	}
	f.sizes, f.away = r.sizes.collect(ctx, f.members)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v := newView(r.o.Map.Databases(), f)
	return v.planned(placer.Plan(&v.cluster, placer.Options{LeavingOnly: of.leavingOnly}), f), nil
}

// unfinished returns the jobs that have not ended.
func unfinished(jobs []*job.Job) []*job.Job {
	var out []*job.Job
	for _, j := range jobs {
		if !j.Ended() {
			out = append(out, j)
		}
	}
	return out
}

// planned names what the placer numbers.
func (v *view) planned(res *placer.Result, f *facts) *Plan {
	out := &Plan{Bytes: res.Totals.Bytes, MustMove: res.Totals.MustMove, Away: f.away, Moves: v.heirs, giveUp: v.giveUp}
	for i := range out.Moves {
		out.Bytes += out.Moves[i].Bytes
		out.MustMove += out.Moves[i].Bytes
	}
	for _, m := range res.Moves {
		out.Moves = append(out.Moves, Move{v.dbs[m.Database], m.Range, v.names[m.From], v.names[m.To], m.Bytes, m.Reason})
	}
	for _, l := range res.Left {
		pinned := l.Why == placer.Pinned // something is under way, or its node is away, or it cannot be mended
		switch {
		case pinned && v.shards[l.Shard].doomed:
			if l.Why = placer.NoMajority; !v.shards[l.Shard].source {
				l.Why = placer.NoSource
			}
		case pinned && l.Reason <= placer.Draining && v.shards[l.Shard].waits:
			out.Waiting++
			continue
		case pinned:
			continue
		}
		if l.Reason <= placer.Draining && l.Why == placer.NodeAway {
			out.Waiting++
		}
		left := Left{Reason: l.Reason, Why: l.Why, Bytes: l.Bytes}
		if l.Node != placer.None {
			left.Node = v.names[l.Node]
		}
		if l.Shard != placer.None {
			s := &v.cluster.Shards[l.Shard]
			left.DB, left.Range = v.dbs[s.Database], s.Range
		}
		out.Left = append(out.Left, left)
	}
	for i, n := range res.Nodes {
		node := Node{Name: v.names[i], Zone: v.cluster.Nodes[i].Zone, Member: i < v.members, NodeBytes: n}
		if node.Draining = node.Member && f.members[i].Draining; node.Member && !node.Draining {
			out.Takers = append(out.Takers, node.Name)
		}
		out.Nodes = append(out.Nodes, node)
	}
	slices.Sort(out.Takers)
	return out
}
