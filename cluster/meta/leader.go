package meta

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"divan/cluster/meta/metapb"
	"divan/storage/fault"
	"divan/storage/pause"
)

// leadTimeout bounds the first commands of a leader.
const leadTimeout = 30 * time.Second

// becomeLeader does what a new leader has to do before it can be relied on.
// Losing the leadership meanwhile is no error.
func (m *Meta) becomeLeader(ctx context.Context, r *raft.Raft) error {
	ctx, cancel := context.WithTimeout(ctx, leadTimeout)
	defer cancel()
	term := r.CurrentTerm()
	for {
		err := m.prepareToLead(ctx, r, term)
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
		_ = pause.For(ctx, electionPoll) // the loop looks at ctx
	}
}

// prepareToLead applies what earlier leaders committed, gives a new group its
// identity and makes this node a member.
func (m *Meta) prepareToLead(ctx context.Context, r *raft.Raft, term uint64) error {
	if err := r.Barrier(leadTimeout).Error(); err != nil {
		return raftError(err)
	}
	if m.fsm.load().uuid == "" {
		identity, err := storedIdentity(*m.stores.Load())
		if err != nil {
			return err
		}
		if _, err := m.submit(ctx, &metapb.Command{Op: &metapb.Command_Init{Init: identity}}); err != nil {
			return err
		}
	}
	known, ok := m.Node(m.Self())
	c := announce(m.selfNode())
	if !ok {
		c = &metapb.Command{Op: &metapb.Command_PutNode{PutNode: m.selfNode().proto()}}
	}
	if (!ok && len(m.Nodes()) == 0) || (ok && m.outdated(known)) {
		if _, err := m.submit(ctx, c); err != nil && !fault.Is(err, fault.NotFound) { // removed meanwhile
			return err
		}
	}
	if r.CurrentTerm() == term {
		m.term.Store(term)
	}
	if err := m.identifyCopies(ctx, m.submit); err != nil {
		return err
	}
	return m.storeAdminHashes(ctx)
}

// startLeaderDuties runs what only the leader does until the result is called,
// which waits for its end.
func (m *Meta) startLeaderDuties(ctx context.Context, r *raft.Raft) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { m.runAutopilot(ctx, r) })
	wg.Go(func() { m.keepIdentified(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// transferLeadership hands the lead to another voter before this node stops, so
// that nobody has to wait for an election.
func (m *Meta) transferLeadership(r *raft.Raft) {
	servers, err := members(r)
	if err != nil || r.State() != raft.Leader || countVoters(servers) < 2 || m.quorumLost() {
		return
	}
	if err := r.LeadershipTransfer().Error(); err != nil {
		m.log.Info("nobody took over the lead of the metadata group")
	}
}
