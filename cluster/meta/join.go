package meta

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/storage/fault"
)

const (
	// joinEvery is how often a new node asks again.
	joinEvery = time.Second

	// attendEvery is how often a node looks whether the cluster knows it as it
	// is, and readyEvery whether it is ready.
	attendEvery = 500 * time.Millisecond
	readyEvery  = 50 * time.Millisecond

	// readyAnyway is how long a node waits for a leader before it works with
	// what it knows.
	readyAnyway = 5 * time.Second

	// strayAfter is how long a node is without a leader before it asks other
	// nodes whether it is still a member, and how often it asks.
	strayAfter = 5 * time.Second
)

// Founding says how a node without state begins.
type Founding struct {
	// Bootstrap founds a group of one.
	Bootstrap bool

	// Seeds are nodes to join through; they are asked in turn until one takes
	// this node in.
	Seeds []string
}

// record returns this node as the cluster is to know it. Whether it is being
// emptied is not its own to say, nor is its zone as long as it is configured
// with none.
func (m *Meta) record() Node {
	n := m.opts.Self
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
func (m *Meta) outdated(known Node) bool { return known != m.record() }

func (m *Meta) joinRequest(fresh bool) joinRequest {
	return joinRequest{
		node: m.record(), uuid: m.fsm.load().uuid, fresh: fresh, oldest: oldestCommand, newest: newestCommand,
	}
}

// joinThrough has a node without state taken in. It must happen before Raft
// runs: what this node may once have voted for is forgotten, so it must not
// vote before the group has stopped to count on it. The error is that of
// ctx or of the stores.
func (m *Meta) joinThrough(ctx context.Context, s Stores, seeds []string) error {
	again := time.NewTicker(joinEvery)
	defer again.Stop()
	said := ""
	for {
		for _, seed := range seeds {
			a, err := m.askJoin(ctx, seed, m.joinRequest(true))
			if err == nil {
				m.log.Info("joined a cluster", zap.String("through", seed), zap.String("uuid", a.uuid))
				return noteOrigin(s, a.origin)
			}
			if text := seed + ": " + err.Error(); text != said && ctx.Err() == nil {
				said = text
				m.log.Warn("not taken in by the cluster yet", zap.String("through", seed), zap.Error(err))
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// askJoin asks a node. A refusal is its fault.
func (m *Meta) askJoin(ctx context.Context, node string, j joinRequest) (*answer, error) {
	if m.opts.Ask == nil {
		return nil, errNotProposed
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	a, err := m.ask(ctx, node, &request{kind: askJoin, join: j})
	if err == nil && a.refusal != nil {
		err = a.refusal
	}
	return a, err
}

// answerJoin takes a node in, or asks the leader to.
func (m *Meta) answerJoin(ctx context.Context, from string, r *raft.Raft, j joinRequest) (*answer, error) {
	if !j.relayed && from != j.node.Name {
		return nil, fault.Newf(fault.BadRequest, "node %s cannot join for %s", from, j.node.Name)
	}
	if r.State() != raft.Leader {
		if j.relayed {
			return nil, errNotProposed
		}
		j.relayed = true
		return m.askLeader(ctx, &request{kind: askJoin, join: j})
	}
	err := m.admit(ctx, r, j)
	s := m.fsm.load()
	a := &answer{index: s.index, term: s.term, uuid: s.uuid, origin: s.origin()}
	if err != nil && fault.Is(err, fault.BadRequest) {
		errors.As(err, &a.refusal)
		return a, nil
	}
	return a, err
}

// admit makes a node part of the group, as one that does not vote.
func (m *Meta) admit(ctx context.Context, r *raft.Raft, j joinRequest) error {
	select {
	case m.admitting <- struct{}{}: // one at a time
		defer func() { <-m.admitting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.term.Load() == 0 {
		return errNotProposed
	}
	servers, err := members(r)
	if err != nil {
		return err
	}
	name := j.node.Name
	known, member := m.Node(name)
	at := slices.IndexFunc(servers, func(s raft.Server) bool { return string(s.ID) == name })
	// One that Raft still has and the state no longer was dropped a moment ago.
	if err := refuse(j, m.fsm.load().uuid, member); err != nil {
		if m.refusals[name] != err.Error() { // once, though it keeps asking
			m.refusals[name] = err.Error()
			m.log.Warn("refused a node", zap.String("node", name), zap.Error(err))
		}
		return err
	}
	delete(m.refusals, name)
	if at >= 0 && j.fresh {
		if !outlives(servers, name, m.alive) {
			return errUnavailable(nil)
		}
		if err := r.RemoveServer(raft.ServerID(name), 0, leadTimeout).Error(); err != nil {
			return raftError(err)
		}
		m.log.Info("a node comes back without its state", zap.String("node", name))
		at = -1
	}
	next := j.node
	next.Draining = known.Draining
	if j.fresh && next.Zone == "" { // it cannot know what it was told before
		next.Zone = known.Zone
	}
	how := kindPutNode
	if member { // and still one when this is carried out
		how = m.either(kindAmendNode, kindPutNode)
	}
	if !member || next != known {
		if _, err := m.submit(ctx, &command{kind: how, node: next}); err != nil {
			return err
		}
	}
	if at >= 0 {
		return nil
	}
	m.log.Info("a node joins", zap.String("node", name))
	if err := r.AddNonvoter(raft.ServerID(name), raft.ServerAddress(name), 0, leadTimeout).Error(); err != nil {
		return raftError(err)
	}
	return m.rememberNow() // this node is not alone any more
}

// refuse says why a node cannot be part of the cluster uuid, nil if it can.
func refuse(j joinRequest, uuid string, member bool) error {
	switch {
	case j.uuid != "" && j.uuid != uuid:
		return fault.Newf(fault.BadRequest, "node %s belongs to the cluster %s; this is the cluster %s", j.node.Name, j.uuid, uuid)
	case j.oldest > newestCommand || j.newest < oldestCommand:
		return fault.Newf(fault.BadRequest, "node %s understands versions %d to %d of the metadata; the cluster %s has versions %d to %d",
			j.node.Name, j.oldest, j.newest, uuid, oldestCommand, newestCommand)
	case !j.fresh && !member:
		return fault.Newf(fault.BadRequest, "node %s was removed from the cluster %s; it can join again with an empty data directory",
			j.node.Name, uuid)
	}
	return nil
}

// attend sees to it that this node becomes ready and that the cluster knows it
// as it is, until ctx ends.
func (m *Meta) attend(ctx context.Context, r *raft.Raft) {
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
			tick.Reset(attendEvery)
		}
		if m.Leader() != "" {
			seen = time.Now()
		} else if time.Since(seen) > strayAfter {
			seen = time.Now()
			m.askAround(ctx)
		}
		again := !m.removed.Load() || time.Since(tried) >= strayAfter // else the answer will be the same
		if term := r.CurrentTerm(); again && m.term.Load() == 0 && m.isReady() && settled != term && m.Leader() != "" {
			tried = time.Now()
			if m.follow(ctx) {
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
// the stored forms of their passwords are kept, which keepAdmins does when
// there is a leader.
func (m *Meta) hashAdmins() {
	if _, err := m.opts.Config.HashAdmins(m.fsm.load().perNode[m.Self()].Set[hashSection]); err != nil {
		m.log.Error("administrators cannot log in", zap.Error(err))
	}
}

// follow does once per leader what this node needs of it, and reports whether
// it is done: the cluster knows the node's present addresses, and plain-text
// administrators are hashed.
func (m *Meta) follow(ctx context.Context) bool {
	if known, ok := m.Node(m.Self()); !ok || m.outdated(known) {
		_, err := m.askJoin(ctx, m.Leader(), m.joinRequest(false))
		m.refused(err)
		if err != nil {
			return false
		}
	}
	if err := m.keepAdmins(ctx); err != nil {
		m.log.Debug("administrators are not hashed yet", zap.Error(err))
		return false
	}
	return true
}

// askAround asks the other members whether this node is still one: whoever was
// removed while it was away has no leader.
func (m *Meta) askAround(ctx context.Context) {
	for _, n := range m.Nodes() {
		if n.Name == m.Self() || !m.alive(n.Name) {
			continue
		}
		_, err := m.askJoin(ctx, n.Name, m.joinRequest(false))
		m.refused(err)
		if err == nil || fault.Is(err, fault.BadRequest) {
			return
		}
	}
}

// refused notes that this node is no longer a member.
func (m *Meta) refused(err error) {
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
