package meta

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/storage/fault"
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
func (m *Meta) propose(ctx context.Context, c *command) (result, error) {
	select {
	case <-m.ready:
		return m.submit(ctx, c)
	default:
		return result{}, errUnavailable(nil)
	}
}

// submit is propose for a node that is not ready yet.
func (m *Meta) submit(ctx context.Context, c *command) (result, error) {
	b := c.encode()
	if len(b) > maxCommand {
		return result{}, errTooLarge()
	}
	var res result
	err := m.retry(ctx, func() (err error) {
		res, err = m.try(ctx, b)
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
		if m.raft.Load() == nil || m.hopeless() {
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

// try proposes a command once, here or at the leader.
func (m *Meta) try(ctx context.Context, b []byte) (result, error) {
	r := m.raft.Load()
	if r.State() == raft.Leader {
		return m.proposeHere(ctx, r, b)
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	a, err := m.askLeader(ctx, &request{kind: askPropose, command: b})
	if err != nil {
		return result{}, err
	}
	if err := m.fsm.reach(ctx, m.logStore(), a.index, a.term); err != nil {
		return result{}, errUndecided(err)
	}
	res := result{db: a.db}
	if a.refusal != nil {
		res.err = a.refusal
	}
	return res, nil
}

// proposeHere proposes a command on the leader. Once it is in the log its
// outcome is awaited whatever becomes of ctx: Raft always answers, at the
// latest when this node loses the leadership, which is after a fraction of a
// second without a majority.
func (m *Meta) proposeHere(ctx context.Context, r *raft.Raft, b []byte) (result, error) {
	if err := m.understood(kind(b[1])); err != nil {
		return result{}, err
	}
	timeout := enqueueTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Millisecond)
	}
	f := r.Apply(b, timeout)
	if err := f.Error(); err != nil {
		return result{}, raftError(err)
	}
	res, ok := f.Response().(result)
	if !ok { // applied by a call that followed another leader
		return result{}, errUndecided(nil)
	}
	if res.err == nil {
		m.afterwards(r, b)
	}
	return res, nil
}

// afterwards takes a node that left out of Raft too. When that fails, or this
// node does not lead any more, expel does it later.
func (m *Meta) afterwards(r *raft.Raft, b []byte) {
	if kind := kind(b[1]); kind != kindDropNode && kind != kindReplace && kind != kindTakeOver {
		return
	}
	c, err := decodeCommand(b)
	if err == nil {
		err = r.RemoveServer(raft.ServerID(c.name), 0, forwardTimeout).Error()
	}
	if err != nil {
		m.log.Warn("a node that left is still in the Raft group", zap.String("node", c.name), zap.Error(err))
	}
}

// askLeader asks the leader that this node knows. The error is errNotProposed
// when the request was certainly not carried out, and fault.Unavailable when
// that is not known.
func (m *Meta) askLeader(ctx context.Context, req *request) (*answer, error) {
	leader := m.Leader()
	if leader == "" || leader == m.Self() || m.opts.Ask == nil || !m.alive(leader) {
		return nil, errNotProposed
	}
	return m.ask(ctx, leader, req)
}

func (m *Meta) ask(ctx context.Context, node string, req *request) (*answer, error) {
	b, err := m.opts.Ask(ctx, node, req.encode())
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
	if a.outcome != outcomeDone {
		return nil, errNotProposed
	}
	return a, nil
}

// notSent reports whether an error says that a request never left this node.
func notSent(err error) bool {
	var e interface{ NotSent() bool }
	return errors.As(err, &e) && e.NotSent()
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

func errStranger(node string) error {
	return fault.Newf(fault.BadRequest, "node %s is not part of the cluster", node)
}

// Answer answers a request of another node, whose name was proven to be from.
// Its errors are faults; for a change of metadata they mean that its outcome
// is not known.
func (m *Meta) Answer(ctx context.Context, from string, b []byte) ([]byte, error) {
	req, err := decodeRequest(b)
	if err != nil {
		return nil, fault.Wrap(fault.BadRequest, "a request about metadata that this version does not understand", err)
	}
	a, err := m.answer(ctx, from, req)
	if errors.Is(err, errNotProposed) {
		return (&answer{outcome: outcomeNotLeader}).encode(), nil
	}
	if err != nil {
		return nil, err
	}
	a.outcome = outcomeDone
	return a.encode(), nil
}

func (m *Meta) answer(ctx context.Context, from string, req *request) (*answer, error) {
	r := m.raft.Load()
	if r == nil {
		return nil, errNotProposed
	}
	switch req.kind {
	case askStats:
		if m.stopping() { // whoever asks is about to rely on this node
			return nil, errStopping()
		}
		return m.stats(r), nil
	case askJoin:
		return m.answerJoin(ctx, from, r, req.join)
	case askIndex:
		if m.term.Load() == 0 {
			return nil, errNotProposed
		}
		if _, member := m.Node(from); !member {
			return nil, errStranger(from)
		}
		if err := m.CatchUp(ctx); err != nil {
			return nil, err
		}
		s := m.fsm.load()
		return &answer{index: s.index, term: s.term}, nil
	case askPropose:
		if _, member := m.Node(from); !member && r.State() == raft.Leader {
			return nil, errStranger(from)
		}
		return m.answerPropose(ctx, r, req.command)
	}
	return nil, fault.New(fault.BadRequest, "an unknown question")
}

// answerPropose proposes a command for another node.
func (m *Meta) answerPropose(ctx context.Context, r *raft.Raft, command []byte) (*answer, error) {
	if r.State() != raft.Leader {
		return nil, errNotProposed
	}
	if len(command) < 2 || len(command) > maxCommand {
		return nil, fault.New(fault.BadRequest, "no command")
	}
	if _, err := decodeCommand(command); err != nil { // would stop every node
		return nil, fault.Wrap(fault.BadRequest, "a command that this version does not understand", err)
	}
	res, err := m.proposeHere(ctx, r, command)
	if err != nil {
		return nil, err
	}
	a := &answer{index: res.index, term: res.term, db: res.db}
	if res.err != nil {
		var refusal *fault.Error
		if !errors.As(res.err, &refusal) {
			return nil, res.err
		}
		a.refusal = refusal
	}
	return a, nil
}
