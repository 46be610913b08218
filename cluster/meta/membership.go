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

// membership is this node's own: that it joins, that the cluster knows it as it is, and that it
// learns of its removal.
type membership struct {
	group  *Group
	fsm    *stateMachine
	reader *Reader
	config *Configuration
	ready  *readiness
	node   Node // as it is configured
	log    *zap.Logger
}

// self returns this node as the cluster is to know it. Whether it is being
// emptied is not its own to say, nor is its zone as long as it is configured
// with none.
func (m *membership) self() Node {
	n := m.node
	n.ClusterVersion = m.fsm.versions.known
	known, ok := m.fsm.load().nodes[n.Name]
	if !ok {
		return n
	}
	n.Draining = known.Draining
	if n.Zone == "" {
		n.Zone = known.Zone
	}
	return n
}

// maintain sees to it that this node becomes ready and that the
// cluster knows it as it is, until ctx ends.
func (m *membership) maintain(ctx context.Context, r *raft.Raft) {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	begin := time.Now()
	seen := begin // when there was a leader, or members were asked for one
	settled, tried := uint64(0), time.Time{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !m.ready.is() {
			m.becomeReady(ctx, time.Since(begin))
		} else {
			tick.Reset(membershipEvery)
		}
		if m.group.Leader() != "" {
			seen = time.Now()
		} else if time.Since(seen) > leaderlessAfter {
			seen = time.Now()
			m.checkStillMember(ctx)
		}
		again := !m.group.removed.Load() || time.Since(tried) >= leaderlessAfter // else the answer will be the same
		if term := r.CurrentTerm(); again && m.group.term.Load() == 0 && m.ready.is() && settled != term && m.group.Leader() != "" {
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
func (m *membership) becomeReady(ctx context.Context, waited time.Duration) {
	err := m.reader.CatchUp(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil && m.fsm.load().uuid != "":
		m.config.hashAdmins()
		m.ready.set()
	case waited >= readyAnyway && m.fsm.load().uuid != "":
		m.log.Warn("no leader of the metadata group; the node works with what it knows", zap.Error(err))
		m.config.hashAdmins()
		m.ready.set()
	}
}

// register does once per leader what this node needs of it, and reports whether
// it is done: the cluster knows the node's present addresses and which version it
// knows, and plain-text administrators are hashed. It asks even if its own state says so
// already: a leader may have been a program that skipped the version.
func (m *membership) register(ctx context.Context) bool {
	_, err := m.ask(ctx, m.group.Leader(), m.request(false))
	m.noteRefusal(err)
	if err != nil {
		return false
	}
	if err := m.config.storeAdminHashes(ctx); err != nil {
		m.log.Debug("administrators are not hashed yet", zap.Error(err))
		return false
	}
	return true
}

// checkStillMember asks the other members whether this node is still one: a node that was removed
// while it was away has no leader.
func (m *membership) checkStillMember(ctx context.Context) {
	for _, n := range m.fsm.load().sortedNodes() {
		if n.Name == m.group.self || !m.group.alive(n.Name) {
			continue
		}
		_, err := m.ask(ctx, n.Name, m.request(false))
		m.noteRefusal(err)
		if err == nil || fault.Is(err, fault.BadRequest) {
			return
		}
	}
}

// noteRefusal notes that this node is no longer a member.
func (m *membership) noteRefusal(err error) {
	if fault.Is(err, fault.BadRequest) && m.group.removed.CompareAndSwap(false, true) {
		m.log.Error("this node is no longer part of its cluster", zap.Error(err))
	}
}

// noteRemoval compares what this node believes of its membership with the
// state.
func (m *membership) noteRemoval() {
	if m.fsm.load().uuid == "" || !m.ready.is() {
		return
	}
	_, member := m.fsm.load().nodes[m.group.self]
	if member && m.group.Leader() != "" && m.group.removed.CompareAndSwap(true, false) {
		m.log.Info("this node is part of its cluster again")
	}
	if !member && m.group.removed.CompareAndSwap(false, true) {
		m.log.Error("this node was removed from its cluster")
	}
}
