package meta

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"divan/storage/fault"
)

// leadTimeout bounds the first commands of a leader.
const leadTimeout = 30 * time.Second

// lead does what a new leader has to do before it can be relied on. Losing the
// leadership meanwhile is no error.
func (m *Meta) lead(ctx context.Context, r *raft.Raft) error {
	ctx, cancel := context.WithTimeout(ctx, leadTimeout)
	defer cancel()
	term := r.CurrentTerm()
	for {
		err := m.settle(ctx, r, term)
		switch {
		case err == nil:
			m.setReady()
			return nil
		case !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Closed) && !errors.Is(err, errNotProposed) && ctx.Err() == nil:
			return err
		case ctx.Err() != nil || r.State() != raft.Leader || r.CurrentTerm() != term:
			m.log.Warn("lost the lead of the metadata group at once")
			return nil
		}
		select {
		case <-time.After(electionPoll):
		case <-ctx.Done():
		}
	}
}

// settle applies what earlier leaders committed, gives a new group its
// identity and makes this node a member.
func (m *Meta) settle(ctx context.Context, r *raft.Raft, term uint64) error {
	if err := r.Barrier(leadTimeout).Error(); err != nil {
		return raftError(err)
	}
	if m.fsm.load().uuid == "" {
		if _, err := m.submit(ctx, m.founding()); err != nil {
			return err
		}
	}
	if known, ok := m.Node(m.Self()); (!ok && len(m.Nodes()) == 0) || (ok && m.outdated(known)) {
		how := kindPutNode
		if ok {
			how = m.either(kindAmendNode, kindPutNode)
		}
		_, err := m.submit(ctx, &command{kind: how, node: m.record()})
		if err != nil && !fault.Is(err, fault.NotFound) { // removed meanwhile
			return err
		}
	}
	if r.CurrentTerm() == term {
		m.term.Store(term)
	}
	return m.keepAdmins(ctx)
}

// randomHex returns 32 hexadecimal digits that nobody can guess.
func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// reign runs what only the leader does until the result is called, which waits
// for its end.
func (m *Meta) reign(ctx context.Context, r *raft.Raft) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { m.govern(ctx, r) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// abdicate hands the lead to another voter before this node stops, so that
// nobody has to wait for an election.
func (m *Meta) abdicate(r *raft.Raft) {
	servers, err := members(r)
	if err != nil || r.State() != raft.Leader || countVoters(servers) < 2 || m.hopeless() {
		return
	}
	if err := r.LeadershipTransfer().Error(); err != nil {
		m.log.Info("nobody took over the lead of the metadata group")
	}
}
