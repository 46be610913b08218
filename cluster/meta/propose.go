package meta

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/meta/metapb"
	"divan/storage/fault"
	"divan/storage/pause"
)

const (
	// enqueueTimeout is how long a command waits for a place in the queue.
	enqueueTimeout = 30 * time.Second

	// electionWait is how long a request waits for a leader while a majority is
	// alive: longer than an election takes.
	electionWait = 2 * time.Second

	// electionPoll is how often it looks.
	electionPoll = 20 * time.Millisecond

	// forwardTimeout bounds a command that the leader carries out for this node,
	// and the time until this node has caught up with it.
	forwardTimeout = 10 * time.Second
)

// errNotProposed says that a command certainly did not get into the log, so
// that it may be proposed again.
var errNotProposed = errors.New("no leader took the command")

func errUnavailable(err error) error {
	return fault.Wrap(fault.Unavailable, "No majority of the nodes can decide on a change of metadata now.", err)
}

// errUndecided is errUnavailable for a change that is on its way: what becomes
// of it is decided when a majority is back.
func errUndecided(err error) error {
	return fault.Wrap(fault.Unavailable,
		"No majority of the nodes can decide on a change of metadata now; this one may still be decided later.", err)
}

// TextRemoved is why a node that was taken out of its cluster refuses.
const TextRemoved = "This node was removed from its cluster."

func errRemoved() error { return fault.New(fault.Unavailable, TextRemoved) }

// proposer has the group agree on commands.
type proposer struct {
	group  *Group
	fsm    *stateMachine
	stores *nodeStores
	ready  *readiness
	log    *zap.Logger

	// versionTurn has space for one (pause.Turn): a member that is added, until that is applied, or
	// an operation that not every program knows, until Raft has it. It is held while Raft works.
	versionTurn chan struct{}
}

// propose has the group agree on a command and returns what came of it, once
// this node has applied it.
//
// fault.Unavailable means that the outcome is not known or that the command
// was not proposed at all. A command whose outcome is not known is never
// proposed again: a creation that succeeded would then look like a refused one.
func (p *proposer) propose(ctx context.Context, c *metapb.Command) (result, error) {
	if !p.ready.is() {
		return result{}, errUnavailable(nil)
	}
	return p.submit(ctx, c)
}

// submit is propose for a node that is not ready yet.
func (p *proposer) submit(ctx context.Context, c *metapb.Command) (result, error) {
	b := encode(c)
	if len(b) > maxCommand {
		return result{}, errTooLarge()
	}
	var res result
	err := p.group.retry(ctx, func() (err error) {
		res, err = p.once(ctx, c, b)
		return err
	})
	if err != nil {
		return result{}, err
	}
	return res, res.err
}

// once proposes a command, whose bytes are b, here or at the leader.
func (p *proposer) once(ctx context.Context, c *metapb.Command, b []byte) (result, error) {
	r := p.group.raft.Load()
	if r.State() == raft.Leader {
		return p.asLeader(ctx, r, c, b)
	}
	if err := p.fsm.load().permitAt(p.group.Leader(), p.fsm.versions.needed(c)); err != nil {
		return result{err: err}, nil // a refusal, without a leader that cannot read the command
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	a, err := p.group.askLeader(ctx, &metapb.Request{Question: &metapb.Request_Propose{Propose: b}})
	if err != nil {
		return result{}, err
	}
	res := result{err: refusalError(a.Refusal)}
	if a.Database != nil {
		if res.db, err = databaseFrom(a.Database); err != nil {
			return result{}, errUndecided(err)
		}
	}
	if err := p.fsm.waitApplied(ctx, p.stores.log(), a.Index, a.Term); err != nil {
		return result{}, errUndecided(err)
	}
	return res, nil
}

// asLeader proposes a command on the leader. Once it is in the log its outcome is awaited even if
// ctx ends: Raft always answers, at the latest when this node loses the leadership, which is after
// a fraction of a second without a majority.
func (p *proposer) asLeader(ctx context.Context, r *raft.Raft, c *metapb.Command, b []byte) (result, error) {
	f, err := p.enqueue(ctx, r, c, b)
	switch {
	case errors.Is(err, errNotProposed):
		return result{}, err
	case err != nil:
		return result{err: err}, nil //nolint:nilerr // the refusal is the outcome
	}
	if err := f.Error(); err != nil {
		return result{}, raftError(err)
	}
	res, ok := f.Response().(result)
	if !ok { // applied by a call that followed another leader
		return result{}, errUndecided(nil)
	}
	if res.err == nil {
		p.removeFromRaft(r, c)
	}
	return res, nil
}

// enqueue gives a command to Raft. An operation of a newer version is refused while a
// member does not know it; a member that may be such a one is in the state before
// another such operation is looked at. The error is errNotProposed or a refusal.
func (p *proposer) enqueue(ctx context.Context, r *raft.Raft, c *metapb.Command, b []byte) (raft.ApplyFuture, error) {
	ctx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	defer cancel()
	needed, members := p.fsm.versions.needed(c), changesMembers(c)
	if members || needed > 0 {
		done, err := pause.Turn(ctx, p.versionTurn)
		if err != nil {
			return nil, errNotProposed
		}
		defer done()
	}
	deadline, _ := ctx.Deadline()
	timeout := max(time.Until(deadline), time.Millisecond)
	switch {
	case members:
		f := r.Apply(b, timeout)
		_ = f.Error() // the caller looks at it; here it is only waited for
		return f, nil
	case needed > 0:
		if led := p.group.term.Load(); led == 0 || led != r.CurrentTerm() { // what earlier leaders proposed may not be in the state yet
			return nil, errNotProposed
		}
		if err := p.fsm.load().permit(needed); err != nil {
			return nil, err
		}
	}
	return r.Apply(b, timeout), nil
}

// answer proposes a command for another node.
func (p *proposer) answer(ctx context.Context, r *raft.Raft, b []byte) (*metapb.Answer, error) {
	if r.State() != raft.Leader {
		return nil, errNotProposed
	}
	if len(b) > maxCommand {
		return nil, errTooLarge()
	}
	c, err := decodeCommand(b)
	if err != nil { // it would stop every node
		return nil, fault.Wrap(fault.BadRequest, "a command that this version does not understand", err)
	}
	res, err := p.asLeader(ctx, r, c.Command, b)
	if err != nil {
		return nil, err
	}
	a := &metapb.Answer{Index: res.index, Term: res.term, Refusal: refusal(res.err)}
	if res.err != nil && a.Refusal == nil {
		return nil, res.err
	}
	if res.db != nil {
		a.Database = res.db.proto()
	}
	return a, nil
}

// removeFromRaft takes a node that left out of Raft too. When that fails, or
// this node does not lead any more, removeNonMembers does it later.
func (p *proposer) removeFromRaft(r *raft.Raft, c *metapb.Command) {
	name := c.GetRemoveNode().GetName() + c.GetReplaceNode().GetName() // a command is one of them
	if name == "" {
		return
	}
	if err := r.RemoveServer(raft.ServerID(name), 0, forwardTimeout).Error(); err != nil {
		p.log.Warn("a node that left is still in the Raft group", zap.String("node", name), zap.Error(err))
	}
}

// raftError sorts the errors of hashicorp/raft.
func raftError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: %w", errNotProposed, err)
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return errUnavailable(err)
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrAbortedByRestore):
		return errUndecided(err)
	case errors.Is(err, raft.ErrRaftShutdown):
		return fault.Wrap(fault.Closed, "The node is shutting down.", err)
	}
	return fmt.Errorf("raft: %w", err)
}
