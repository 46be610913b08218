package meta

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
	"go.uber.org/zap"

	"divan/cluster/meta/metapb"
	"divan/cluster/meta/raftlog"
)

const (
	handOverEvery  = 30 * time.Second // a leader without room on its disk tries to hand the lead over: others may have none either
	autopilotEvery = time.Second      // the health of all nodes is looked at, and who votes is decided
	stableAfter    = 2 * time.Second  // of good health, a node may vote
	failedAfter    = 10 * time.Second // of bad health, another node may vote in a voter's place
	lastContact    = 5 * time.Second  // without a word of the leader a node is not healthy
	maxTrailing    = 10_000           // log entries that a healthy node may lag
	statsAtATime   = 8                // nodes are asked at once
	askVoter       = time.Second      // to answer, for a node that is to vote
)

// runAutopilot has autopilot decide who votes, and remove from Raft who is no
// longer a member, until ctx ends.
func (m *Meta) runAutopilot(ctx context.Context, r *raft.Raft) {
	if m.opts.Transport == nil {
		return // nobody else will ever come
	}
	h := &healthTracker{since: map[string]health{}}
	pilot := autopilot.New(&checkedRaft{r, m, func(node string) bool { return m.answers(ctx, node) }}, &integration{m: m, raft: r, healths: h}, autopilot.WithPromoter(promoter{h}), autopilot.WithLogger(raftlog.New(m.log)),
		autopilot.WithUpdateInterval(autopilotEvery), autopilot.WithReconcileInterval(autopilotEvery))
	pilot.Start(ctx)
	again := time.NewTicker(autopilotEvery)
	defer again.Stop()
	handed := time.Now() // the lead: to this node just now, by one without room perhaps, or when it tried to hand it over
	for ctx.Err() == nil {
		select {
		case now := <-again.C:
			if m.opts.DiskFull != nil && now.Sub(handed) > handOverEvery && m.opts.DiskFull() != nil {
				handed = now
				m.transferLeadership(r)
			}
			if err := m.removeNonMembers(ctx, r); err != nil {
				m.log.Debug("a node that left is still in the Raft group", zap.Error(err))
			}
		case <-ctx.Done():
		}
	}
	<-pilot.Stop()
}

// removeNonMembers takes a server out of Raft that is no member any more:
// whoever removed it could not, for instance because it lost the lead in
// between. Autopilot keeps a voter as soon as two are left, and a group of two
// whose other voter has gone can decide nothing.
func (m *Meta) removeNonMembers(ctx context.Context, r *raft.Raft) error {
	select {
	case m.admitting <- struct{}{}: // who joins is a member first and in Raft after that
		defer func() { <-m.admitting }()
	case <-ctx.Done():
		return nil
	}
	// The servers are read before the members are: a server without a member
	// has lost it then.
	f := r.GetConfiguration()
	if err := f.Error(); err != nil {
		return fmt.Errorf("read the members of the group: %w", err)
	}
	servers := f.Configuration().Servers
	for _, s := range servers {
		if _, member := m.Node(string(s.ID)); member || m.term.Load() == 0 || !majorityWithout(servers, string(s.ID), m.alive) {
			continue
		}
		m.log.Info("a node that left is taken out of the Raft group", zap.String("node", string(s.ID)))
		return r.RemoveServer(s.ID, f.Index(), leadTimeout).Error() // one per round: the index has moved
	}
	return nil
}

// checkedRaft keeps autopilot, which decides by what it saw a moment ago, from
// bringing back a node that was removed since, and from giving a vote to one
// that has gone since: a second voter that is away is a lost majority.
type checkedRaft struct {
	*raft.Raft
	m       *Meta
	answers func(node string) bool
}

var _ autopilot.Raft = (*checkedRaft)(nil)

// AddVoter implements autopilot.Raft.
func (c *checkedRaft) AddVoter(id raft.ServerID, address raft.ServerAddress, _ uint64, timeout time.Duration) raft.IndexFuture {
	if !c.answers(string(id)) { // which takes a while; so it is asked first
		return refusedChange{errGone(string(id))}
	}
	f := c.GetConfiguration()
	if err := f.Error(); err != nil {
		return refusedChange{err}
	}
	_, member := c.m.Node(string(id))
	if !member || !slices.ContainsFunc(f.Configuration().Servers, func(s raft.Server) bool { return s.ID == id }) {
		return refusedChange{errNoNode(string(id))}
	}
	return c.Raft.AddVoter(id, address, f.Index(), timeout) // not if somebody was removed since
}

// answers asks a node whether it is there now.
func (m *Meta) answers(ctx context.Context, node string) bool {
	if node == m.Self() || m.opts.Ask == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askVoter)
	defer cancel()
	if !m.alive(node) {
		return false
	}
	_, err := m.ask(ctx, node, &metapb.Request{Question: &metapb.Request_LogStats{LogStats: &metapb.Nothing{}}})
	return err == nil
}

func errGone(node string) error { return fmt.Errorf("%s does not answer: it gets no vote", node) }

// refusedChange is a change of the voters that was not tried.
type refusedChange struct{ err error }

func (r refusedChange) Error() error { return r.err }
func (refusedChange) Index() uint64  { return 0 }

// integration tells autopilot about the nodes.
type integration struct {
	m       *Meta
	raft    *raft.Raft
	healths *healthTracker
}

// health is how a node is, and since when. Autopilot's own time of the last
// change is that of the first look (0.3.0 compares the new value with itself).
type health struct {
	good  bool
	since time.Time
}

// healthTracker follows the health of all nodes.
type healthTracker struct {
	mu    sync.Mutex
	since map[string]health
}

// record notes how the nodes are now.
func (h *healthTracker) record(s *autopilot.State, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, server := range s.Servers {
		if old, ok := h.since[string(id)]; !ok || old.good != server.Health.Healthy {
			h.since[string(id)] = health{server.Health.Healthy, now}
		}
	}
}

// lasts reports whether a node has been well, or unwell, for a time.
func (h *healthTracker) lasts(node string, good bool, d time.Duration, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	is, ok := h.since[node]
	return ok && is.good == good && now.Sub(is.since) >= d
}

var _ autopilot.ApplicationIntegration = (*integration)(nil)

// AutopilotConfig implements autopilot.ApplicationIntegration, as the methods
// below do.
func (d *integration) AutopilotConfig() *autopilot.Config {
	return &autopilot.Config{
		CleanupDeadServers: true, LastContactThreshold: lastContact, MaxTrailingLogs: maxTrailing,
		MinQuorum: 1, ServerStabilizationTime: stableAfter,
	}
}

func (d *integration) NotifyState(s *autopilot.State) { d.healths.record(s, time.Now()) }

func (d *integration) RemoveFailedServer(*autopilot.Server) {}

func (d *integration) KnownServers() map[raft.ServerID]*autopilot.Server {
	out := map[raft.ServerID]*autopilot.Server{}
	for _, n := range d.m.Nodes() {
		s := &autopilot.Server{
			ID: raft.ServerID(n.Name), Name: n.Name, Address: raft.ServerAddress(n.Name), NodeStatus: autopilot.NodeFailed,
			RaftVersion: int(raft.ProtocolVersionMax), IsLeader: n.Name == d.m.Self(), Ext: n,
		}
		if d.m.alive(n.Name) {
			s.NodeStatus = autopilot.NodeAlive
		}
		out[s.ID] = s
	}
	return out
}

// FetchServerStats asks every node how far its log is.
func (d *integration) FetchServerStats(ctx context.Context, servers map[raft.ServerID]*autopilot.Server) map[raft.ServerID]*autopilot.ServerStats {
	out := make(map[raft.ServerID]*autopilot.ServerStats, len(servers))
	var mu sync.Mutex
	var wg sync.WaitGroup
	turn := make(chan struct{}, statsAtATime)
	for id, s := range servers {
		if s.NodeStatus != autopilot.NodeAlive {
			continue
		}
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			a := d.stats(ctx, string(id))
			if a == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = &autopilot.ServerStats{
				LastContact: time.Duration(a.ContactMs) * time.Millisecond, LastTerm: a.Term, LastIndex: a.Index,
			}
		})
	}
	wg.Wait()
	return out
}

func (d *integration) stats(ctx context.Context, node string) *metapb.Answer {
	if node == d.m.Self() {
		return d.m.logStats(d.raft)
	}
	if d.m.opts.Ask == nil {
		return nil
	}
	a, err := d.m.ask(ctx, node, &metapb.Request{Question: &metapb.Request_LogStats{LogStats: &metapb.Nothing{}}})
	if err != nil {
		return nil
	}
	return a
}

// logStats answers how far this node's log is.
func (m *Meta) logStats(r *raft.Raft) *metapb.Answer {
	a := &metapb.Answer{Index: r.LastIndex()}
	var last raft.Log
	if log := m.logStore(); log != nil && a.Index > 0 && log.GetLog(a.Index, &last) == nil {
		a.Term = last.Term
	} else {
		a.Term = r.CurrentTerm() // the log was compacted up to its end
	}
	if r.State() != raft.Leader {
		a.ContactMs = uint64(max(time.Since(r.LastContact()), 0) / time.Millisecond)
	}
	return a
}

// promoter decides who votes.
type promoter struct{ healths *healthTracker }

var _ autopilot.Promoter = promoter{}

// GetServerExt implements autopilot.Promoter, as the methods below do.
func (promoter) GetServerExt(*autopilot.Config, *autopilot.ServerState) any { return nil }

func (promoter) GetStateExt(*autopilot.Config, *autopilot.State) any { return nil }

func (promoter) GetNodeTypes(*autopilot.Config, *autopilot.State) map[raft.ServerID]autopilot.NodeType {
	return nil
}

func (promoter) IsPotentialVoter(autopilot.NodeType) bool { return true }

// FilterFailedServerRemovals lets only servers go that are no members: a member
// that fails is expected back.
func (promoter) FilterFailedServerRemovals(_ *autopilot.Config, _ *autopilot.State, f *autopilot.FailedServers) *autopilot.FailedServers {
	return &autopilot.FailedServers{StaleNonVoters: f.StaleNonVoters, StaleVoters: f.StaleVoters}
}

func (p promoter) CalculatePromotionsAndDemotions(_ *autopilot.Config, s *autopilot.State) autopilot.RaftChanges {
	next := decideVoters(p.members(s, time.Now()))
	var out autopilot.RaftChanges
	if next.promote != "" {
		out.Promotions = append(out.Promotions, raft.ServerID(next.promote))
	}
	if next.demote != "" {
		out.Demotions = append(out.Demotions, raft.ServerID(next.demote))
	}
	return out
}

// members translates autopilot's view of the members.
func (p promoter) members(s *autopilot.State, now time.Time) []votingMember {
	var out []votingMember
	for id, server := range s.Servers {
		n, member := server.Server.Ext.(Node)
		if !member || server.Server.NodeStatus == autopilot.NodeLeft {
			continue // on its way out
		}
		out = append(out, votingMember{
			name: string(id), zone: n.Zone, draining: n.Draining,
			voter: server.HasVotingRights(), leader: server.State == autopilot.RaftLeader,
			stable: p.healths.lasts(string(id), true, stableAfter, now),
			failed: p.healths.lasts(string(id), false, failedAfter, now),
		})
	}
	return out
}
