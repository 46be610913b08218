package meta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"divan/cluster/meta/metapb"
	"divan/cluster/meta/voters"
)

// Group is the Raft group as this node sees it: who leads and votes, who can be reached,
// and how others are asked.
type Group struct {
	self    string
	lone    bool          // no other node will ever come
	timeout time.Duration // how long the leader may be silent

	seesAlive func(node string) bool                                                 // Options.Alive
	send      func(ctx context.Context, node string, request []byte) ([]byte, error) // Options.Ask

	raft    atomic.Pointer[raft.Raft] // nil until Run has started it
	term    atomic.Uint64             // in which this node leads and has applied all that earlier leaders committed; 0: none
	removed atomic.Bool               // this node was a member and is none any more
	done    chan struct{}             // closed when Run has returned
}

func newGroup(o *Options) *Group {
	return &Group{
		self: o.Self.Name, lone: o.Transport == nil, timeout: max(raftTimeout, o.NodeDownAfter*2/5), seesAlive: o.Alive, send: o.Ask, done: make(chan struct{}),
	}
}

// Self returns the name of this node.
func (g *Group) Self() string { return g.self }

// Leader returns the name of the node that leads the group, as far as this one
// knows; empty when it knows of none.
func (g *Group) Leader() string {
	r := g.raft.Load()
	if r == nil {
		return ""
	}
	_, id := r.LeaderWithID()
	return string(id)
}

// Voters returns the names of the nodes that vote, sorted.
func (g *Group) Voters() []string {
	r := g.raft.Load()
	if r == nil {
		return nil
	}
	servers, err := members(r)
	if err != nil {
		return nil
	}
	var out []string
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			out = append(out, string(s.ID))
		}
	}
	slices.Sort(out)
	return out
}

// CommitIndex returns the number of the last entry of the log that this node
// knows to be committed; 0 before it takes part.
func (g *Group) CommitIndex() uint64 {
	r := g.raft.Load()
	if r == nil {
		return 0
	}
	return r.CommitIndex()
}

// alive reports whether a node is known to be there.
func (g *Group) alive(node string) bool {
	return node == g.self || g.seesAlive == nil || g.seesAlive(node) || g.heardFrom(node)
}

// heardFrom reports whether Raft has heard of the leader a moment ago, which
// proves more than what others say about it.
func (g *Group) heardFrom(leader string) bool {
	r := g.raft.Load()
	return r != nil && leader == g.Leader() && time.Since(r.LastContact()) < g.timeout
}

// quorumLost reports whether no majority can decide now, nor after an election.
// A leader finds out by itself, as fast.
func (g *Group) quorumLost() bool {
	r := g.raft.Load()
	if r == nil {
		return true
	}
	servers, err := members(r)
	if err != nil || len(servers) == 0 {
		return true
	}
	if leader := g.Leader(); leader != "" && (leader == g.self || g.heardFrom(leader)) {
		return false
	}
	return !voters.MajorityAlive(servers, g.alive)
}

// LeadTerm returns the term of Raft in which this node leads the group and knows
// all that earlier leaders had it agree on; 0 when it does not.
func (g *Group) LeadTerm() uint64 { return g.term.Load() }

// Removed reports whether this node was a member of the cluster and is none any more. It still has
// the state that it had, and no member listens to it.
func (g *Group) Removed() bool { return g.removed.Load() }

// askLeader asks the leader that this node knows. The error is errNotProposed
// when the request was certainly not carried out, and fault.Unavailable when
// that is not known.
func (g *Group) askLeader(ctx context.Context, req *metapb.Request) (*metapb.Answer, error) {
	leader := g.Leader()
	if leader == "" || leader == g.self || g.send == nil || !g.alive(leader) {
		return nil, errNotProposed
	}
	return g.ask(ctx, leader, req)
}

// ask asks a node. The errors are those of askLeader.
func (g *Group) ask(ctx context.Context, node string, req *metapb.Request) (*metapb.Answer, error) {
	b, err := g.send(ctx, node, encode(req))
	if notSent(err) {
		return nil, fmt.Errorf("%w: %w", errNotProposed, err)
	}
	if err != nil {
		return nil, errUndecided(err)
	}
	a, err := decodeAnswer(b)
	if err != nil {
		return nil, errUndecided(err)
	}
	if a.Outcome != metapb.Answer_DONE {
		return nil, errNotProposed
	}
	return a, nil
}

// retry calls fn again while it says errNotProposed, as long as an election
// may be under way.
func (g *Group) retry(ctx context.Context, fn func() error) error {
	end := time.Now().Add(electionWait)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if g.quorumLost() {
			return errUnavailable(nil)
		}
		if g.removed.Load() {
			return errRemoved()
		}
		err := fn()
		if !errors.Is(err, errNotProposed) {
			return err
		}
		if !time.Now().Before(end) {
			return errUnavailable(err)
		}
		select {
		case <-time.After(electionPoll):
		case <-g.done:
			return errStopping()
		case <-ctx.Done():
		}
	}
}

// logStats asks a node how far its log is.
func (g *Group) logStats(ctx context.Context, node string) (*metapb.Answer, error) {
	if g.send == nil {
		return nil, errNotProposed
	}
	return g.ask(ctx, node, &metapb.Request{Question: &metapb.Request_LogStats{LogStats: &metapb.Nothing{}}})
}

func members(r *raft.Raft) ([]raft.Server, error) {
	f := r.GetConfiguration()
	if err := f.Error(); err != nil {
		return nil, fmt.Errorf("read the members of the group: %w", err)
	}
	return f.Configuration().Servers, nil
}
