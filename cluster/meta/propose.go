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

// propose has the group agree on a command and returns what came of it, once
// this node has applied it.
//
// fault.Unavailable means that the outcome is not known or that the command
// was not proposed at all. A command whose outcome is not known is never
// proposed again: a creation that succeeded would then look like a refused one.
func (m *Meta) propose(ctx context.Context, c *metapb.Command) (result, error) {
	select {
	case <-m.ready:
		return m.submit(ctx, c)
	default:
		return result{}, errUnavailable(nil)
	}
}

// submit is propose for a node that is not ready yet.
func (m *Meta) submit(ctx context.Context, c *metapb.Command) (result, error) {
	b := encode(c)
	if len(b) > maxCommand {
		return result{}, errTooLarge()
	}
	var res result
	err := m.retry(ctx, func() (err error) {
		res, err = m.proposeOnce(ctx, c, b)
		return err
	})
	if err != nil {
		return result{}, err
	}
	return res, res.err
}

// retry calls fn again while it says errNotProposed, as long as an election
// may be under way.
func (m *Meta) retry(ctx context.Context, fn func() error) error {
	end := time.Now().Add(electionWait)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.raft.Load() == nil || m.quorumLost() {
			return errUnavailable(nil)
		}
		if m.removed.Load() {
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
		case <-m.done:
			return errStopping()
		case <-ctx.Done():
		}
	}
}

// proposeOnce proposes a command, whose bytes are b, here or at the leader.
func (m *Meta) proposeOnce(ctx context.Context, c *metapb.Command, b []byte) (result, error) {
	r := m.raft.Load()
	if r.State() == raft.Leader {
		return m.proposeAsLeader(ctx, r, c, b)
	}
	if err := m.fsm.load().permitAt(m.Leader(), m.fsm.versions.needed(c)); err != nil {
		return result{err: err}, nil // a refusal, without a leader that cannot read the command
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	a, err := m.askLeader(ctx, &metapb.Request{Question: &metapb.Request_Propose{Propose: b}})
	if err != nil {
		return result{}, err
	}
	res := result{err: refusalError(a.Refusal)}
	if a.Database != nil {
		if res.db, err = databaseFrom(a.Database); err != nil {
			return result{}, errUndecided(err)
		}
	}
	if err := m.fsm.waitApplied(ctx, m.logStore(), a.Index, a.Term); err != nil {
		return result{}, errUndecided(err)
	}
	return res, nil
}

// proposeAsLeader proposes a command on the leader. Once it is in the log its
// outcome is awaited whatever becomes of ctx: Raft always answers, at the
// latest when this node loses the leadership, which is after a fraction of a
// second without a majority.
func (m *Meta) proposeAsLeader(ctx context.Context, r *raft.Raft, c *metapb.Command, b []byte) (result, error) {
	f, err := m.enqueue(ctx, r, c, b)
	switch {
	case errors.Is(err, errNotProposed):
		return result{}, err
	case err != nil:
		return result{err: err}, nil //nolint:nilerr // a refusal is what came of it
	}
	if err := f.Error(); err != nil {
		return result{}, raftError(err)
	}
	res, ok := f.Response().(result)
	if !ok { // applied by a call that followed another leader
		return result{}, errUndecided(nil)
	}
	if res.err == nil {
		m.removeFromRaft(r, c)
	}
	return res, nil
}

// enqueue gives a command to Raft. An operation of a newer version is refused while a
// member does not know it; a member that may be such a one is in the state before
// another such operation is looked at. The error is errNotProposed or a refusal.
func (m *Meta) enqueue(ctx context.Context, r *raft.Raft, c *metapb.Command, b []byte) (raft.ApplyFuture, error) {
	ctx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	defer cancel()
	needed, members := m.fsm.versions.needed(c), changesMembers(c)
	if members || needed > 0 {
		done, err := pause.Turn(ctx, m.versionTurn)
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
		if led := m.term.Load(); led == 0 || led != r.CurrentTerm() { // what earlier leaders proposed may not be in the state yet
			return nil, errNotProposed
		}
		if err := m.fsm.load().permit(needed); err != nil {
			return nil, err
		}
	}
	return r.Apply(b, timeout), nil
}

// removeFromRaft takes a node that left out of Raft too. When that fails, or
// this node does not lead any more, removeNonMembers does it later.
func (m *Meta) removeFromRaft(r *raft.Raft, c *metapb.Command) {
	name := c.GetRemoveNode().GetName() + c.GetReplaceNode().GetName() // a command is one of them
	if name == "" {
		return
	}
	if err := r.RemoveServer(raft.ServerID(name), 0, forwardTimeout).Error(); err != nil {
		m.log.Warn("a node that left is still in the Raft group", zap.String("node", name), zap.Error(err))
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
