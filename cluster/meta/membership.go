package meta

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/storage/fault"
)

const (
	// membershipEvery is how often a node looks whether the cluster knows it as it
	// is, and readyEvery whether it is ready.
	membershipEvery = 500 * time.Millisecond
	readyEvery      = 50 * time.Millisecond

	// readyAnyway is how long a node waits for a leader before it works with
	// what it knows.
	readyAnyway = 5 * time.Second

	// leaderlessAfter is how long a node is without a leader before it asks other
	// nodes whether it is still a member, and how often it asks.
	leaderlessAfter = 5 * time.Second
)

// selfNode returns this node as the cluster is to know it. Whether it is being
// emptied is not its own to say, nor is its zone as long as it is configured
// with none.
func (m *Meta) selfNode() Node {
	n := m.opts.Self
	n.ClusterVersion = m.fsm.versions.known
	known, ok := m.Node(n.Name)
	if !ok {
		return n
	}
	n.Draining = known.Draining
	if n.Zone == "" {
		n.Zone = known.Zone
	}
	return n
}

// outdated reports whether the cluster knows this node otherwise than it is.
func (m *Meta) outdated(known Node) bool { return known != m.selfNode() }

// maintainMembership sees to it that this node becomes ready and that the
// cluster knows it as it is, until ctx ends.
func (m *Meta) maintainMembership(ctx context.Context, r *raft.Raft) {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	begin := time.Now()
	seen := begin // when there was a leader, or somebody was asked for one
	settled, tried := uint64(0), time.Time{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !m.isReady() {
			m.becomeReady(ctx, time.Since(begin))
		} else {
			tick.Reset(membershipEvery)
		}
		if m.Leader() != "" {
			seen = time.Now()
		} else if time.Since(seen) > leaderlessAfter {
			seen = time.Now()
			m.checkStillMember(ctx)
		}
		again := !m.removed.Load() || time.Since(tried) >= leaderlessAfter // else the answer will be the same
		if term := r.CurrentTerm(); again && m.term.Load() == 0 && m.isReady() && settled != term && m.Leader() != "" {
			tried = time.Now()
			if m.register(ctx) {
				settled = term
			}
		}
		m.noteRemoval()
	}
}

// becomeReady catches up for the first time. Without a leader, a node that
// knew something works with that: documents need no majority.
func (m *Meta) becomeReady(ctx context.Context, waited time.Duration) {
	err := m.CatchUp(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil && m.fsm.load().uuid != "":
		m.hashAdmins()
		m.setReady()
	case waited >= readyAnyway && m.fsm.load().uuid != "":
		m.log.Warn("no leader of the metadata group; the node works with what it knows", zap.Error(err))
		m.hashAdmins()
		m.setReady()
	}
}

// hashAdmins lets the administrators of files and environment log in before
// the stored forms of their passwords are kept, which storeAdminHashes does when
// there is a leader.
func (m *Meta) hashAdmins() {
	if _, err := m.opts.Config.HashAdmins(m.fsm.load().perNode[m.Self()].Set[adminHashSection]); err != nil {
		m.log.Error("administrators cannot log in", zap.Error(err))
	}
}

// register does once per leader what this node needs of it, and reports whether
// it is done: the cluster knows the node's present addresses and which version it
// knows, and plain-text administrators are hashed. It asks even if its own state says so
// already: a leader may have been a program that skipped the version.
func (m *Meta) register(ctx context.Context) bool {
	_, err := m.askJoin(ctx, m.Leader(), m.joinRequest(false))
	m.noteRefusal(err)
	if err != nil {
		return false
	}
	if err := m.storeAdminHashes(ctx); err != nil {
		m.log.Debug("administrators are not hashed yet", zap.Error(err))
		return false
	}
	return true
}

// checkStillMember asks the other members whether this node is still one:
// whoever was removed while it was away has no leader.
func (m *Meta) checkStillMember(ctx context.Context) {
	for _, n := range m.Nodes() {
		if n.Name == m.Self() || !m.alive(n.Name) {
			continue
		}
		_, err := m.askJoin(ctx, n.Name, m.joinRequest(false))
		m.noteRefusal(err)
		if err == nil || fault.Is(err, fault.BadRequest) {
			return
		}
	}
}

// noteRefusal notes that this node is no longer a member.
func (m *Meta) noteRefusal(err error) {
	if fault.Is(err, fault.BadRequest) && m.removed.CompareAndSwap(false, true) {
		m.log.Error("this node is no longer part of its cluster", zap.Error(err))
	}
}

// noteRemoval compares what this node believes of its membership with the
// state.
func (m *Meta) noteRemoval() {
	if m.fsm.load().uuid == "" || !m.isReady() {
		return
	}
	_, member := m.Node(m.Self())
	if member && m.Leader() != "" && m.removed.CompareAndSwap(true, false) {
		m.log.Info("this node is part of its cluster again")
	}
	if !member && m.removed.CompareAndSwap(false, true) {
		m.log.Error("this node was removed from its cluster")
	}
}

// Removed reports whether this node was a member of the cluster and is none
// any more. It still has the state that it had, and nobody listens to it.
func (m *Meta) Removed() bool { return m.removed.Load() }
