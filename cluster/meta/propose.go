package meta

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"divan/storage/fault"
)

// enqueueTimeout is how long a command waits for a place in the queue when the
// caller sets no deadline.
const enqueueTimeout = 30 * time.Second

func errUnavailable(err error) error {
	return fault.Wrap(fault.Unavailable, "No majority of the nodes can decide on a change of metadata now.", err)
}

// propose has the group agree on a command and returns what came of it here.
// Once a command is in the log its outcome is awaited whatever becomes of ctx:
// Raft always answers, at the latest when this node loses the leadership,
// which is after a fraction of a second without a majority.
//
// fault.Unavailable means that the outcome is not known or that the command
// was not proposed at all.
func (m *Meta) propose(ctx context.Context, c *command) (result, error) {
	r := m.raft.Load()
	if r == nil {
		return result{}, errUnavailable(nil)
	}
	select {
	case <-m.ready:
	default:
		return result{}, errUnavailable(nil)
	}
	return proposeTo(ctx, r, c)
}

func proposeTo(ctx context.Context, r *raft.Raft, c *command) (result, error) {
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	b := c.encode()
	if len(b) > maxCommand {
		return result{}, fault.New(fault.RequestTooLarge, "the request entity is too large")
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
	if !ok {
		return result{}, fmt.Errorf("command %d: the state machine gave no result", c.kind)
	}
	return res, res.err
}

// raftError sorts the errors of hashicorp/raft.
func raftError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout),
		errors.Is(err, raft.ErrAbortedByRestore):
		return errUnavailable(err)
	case errors.Is(err, raft.ErrRaftShutdown):
		return fault.Wrap(fault.Closed, "The node is shutting down.", err)
	}
	return fmt.Errorf("raft: %w", err)
}

// CatchUp returns once this node has applied every change that was
// acknowledged, by any node, before the call. Whoever is about to answer that
// something does not exist calls it first and looks again.
//
// A leader has applied what it acknowledged, and since it became one also what
// its predecessors did; it only has to make sure that it still leads. In a
// group of one there is nobody else to lead.
func (m *Meta) CatchUp(ctx context.Context) error {
	r := m.raft.Load()
	if r == nil || !m.leading.Load() {
		return errUnavailable(nil)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if servers, err := members(r); err != nil || (len(servers) == 1 && m.leading.Load()) {
		return err
	}
	if err := r.VerifyLeader().Error(); err != nil {
		return raftError(err)
	}
	return nil
}

// lead does what a new leader has to do before it can be relied on. Losing the
// leadership meanwhile is no error.
func (m *Meta) lead(ctx context.Context, r *raft.Raft) error {
	ctx, cancel := context.WithTimeout(ctx, leadTimeout)
	defer cancel()
	err := m.settle(ctx, r)
	switch {
	case err == nil:
		m.leading.Store(true)
		m.onReady.Do(func() { close(m.ready) })
		return nil
	case fault.Is(err, fault.Unavailable), fault.Is(err, fault.Closed), ctx.Err() != nil:
		m.log.Warn("lost the lead of the metadata group at once")
		return nil
	}
	return err
}

// settle applies what earlier leaders committed, gives a new group its
// identity and makes this node a member.
func (m *Meta) settle(ctx context.Context, r *raft.Raft) error {
	if err := r.Barrier(leadTimeout).Error(); err != nil {
		return raftError(err)
	}
	if m.fsm.load().uuid == "" {
		uuid := m.opts.Config.Load().CouchDB.UUID // of the ini files, when a CouchDB becomes a Divan
		if uuid == "" {
			uuid = randomHex()
		}
		c := &command{kind: kindInit, init: initCommand{uuid: uuid, secret: randomHex()}}
		if _, err := proposeTo(ctx, r, c); err != nil {
			return err
		}
	}
	if known, ok := m.Node(m.Self()); !ok || known != m.opts.Self {
		if _, err := proposeTo(ctx, r, &command{kind: kindPutNode, node: m.opts.Self}); err != nil {
			return err
		}
	}
	return m.keepAdmins(ctx, r)
}

// randomHex returns 32 hexadecimal digits that nobody can guess.
func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
