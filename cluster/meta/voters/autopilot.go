// Package voters decides which members of a Raft group vote, and has that carried out: an odd
// number of healthy ones, spread over zones, five at most. autopilot collects health and
// changes the group; the next step is a pure function (decide.go).
package voters

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
	"go.uber.org/zap"

	"divan/cluster/meta/raftlog"
)

// FailedAfter is how long a voter is unhealthy before another node may vote in its place.
const FailedAfter = 10 * time.Second

const (
	autopilotEvery = time.Second     // the health of all nodes is looked at, and who votes is decided
	stableAfter    = 2 * time.Second // of good health, a node may vote
	lastContact    = 5 * time.Second // without a word of the leader a node is not healthy
	maxTrailing    = 10_000          // log entries that a healthy node may lag
	statsAtATime   = 8               // nodes are asked at once
	askVoter       = time.Second     // to answer, for a node that is to vote
)

// Member is a member of the cluster.
type Member struct {
	Name     string
	Zone     string
	Draining bool // gets no vote
}

// LogStats is how far the log of a node is.
type LogStats struct {
	Index, Term uint64        // of its last entry
	Contact     time.Duration // since it heard of the leader
}

// Group is the Raft group as its leader sees it. All is required.
type Group struct {
	Raft    *raft.Raft
	Self    string                                                   // this node, the leader
	Members func() []Member                                          // who belongs to it
	Alive   func(node string) bool                                   // what is known of a node, without waiting
	Stats   func(ctx context.Context, node string) (LogStats, error) // of any member, asked now
	Logger  *zap.Logger
}

// Keep decides who votes, and removes from Raft who is no longer a member, until ctx ends.
func Keep(ctx context.Context, g *Group) {
	h := &healthTracker{since: map[string]health{}}
	pilot := autopilot.New(&checkedRaft{g.Raft, g.Members, func(node string) bool { return g.answers(ctx, node) }}, &integration{g, h}, autopilot.WithPromoter(promoter{h}), autopilot.WithLogger(raftlog.New(g.Logger)),
		autopilot.WithUpdateInterval(autopilotEvery), autopilot.WithReconcileInterval(autopilotEvery))
	pilot.Start(ctx)
	<-ctx.Done()
	<-pilot.Stop()
}

// checkedRaft keeps autopilot, which decides by what it saw a moment ago, from
// bringing back a node that was removed since, and from giving a vote to one
// that has gone since: a second voter that is away is a lost majority.
type checkedRaft struct {
	*raft.Raft
	members func() []Member
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
	member := slices.ContainsFunc(c.members(), func(m Member) bool { return m.Name == string(id) })
	if !member || !slices.ContainsFunc(f.Configuration().Servers, func(s raft.Server) bool { return s.ID == id }) {
		return refusedChange{fmt.Errorf("%s is no member: it gets no vote", id)}
	}
	return c.Raft.AddVoter(id, address, f.Index(), timeout) // not if a server was removed since
}

// answers asks a node whether it is there now.
func (g *Group) answers(ctx context.Context, node string) bool {
	if node == g.Self {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askVoter)
	defer cancel()
	if !g.Alive(node) {
		return false
	}
	_, err := g.Stats(ctx, node)
	return err == nil
}

func errGone(node string) error { return fmt.Errorf("%s does not answer: it gets no vote", node) }

// refusedChange is a change of the voters that was not tried.
type refusedChange struct{ err error }

func (r refusedChange) Error() error { return r.err }
func (refusedChange) Index() uint64  { return 0 }

// integration tells autopilot about the nodes.
type integration struct {
	group   *Group
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
	for _, n := range d.group.Members() {
		s := &autopilot.Server{
			ID: raft.ServerID(n.Name), Name: n.Name, Address: raft.ServerAddress(n.Name), NodeStatus: autopilot.NodeFailed,
			RaftVersion: int(raft.ProtocolVersionMax), IsLeader: n.Name == d.group.Self, Ext: n,
		}
		if d.group.Alive(n.Name) {
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
			is, err := d.group.Stats(ctx, string(id))
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[id] = &autopilot.ServerStats{LastContact: is.Contact, LastTerm: is.Term, LastIndex: is.Index}
		})
	}
	wg.Wait()
	return out
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
	next := decide(p.candidates(s, time.Now()))
	var out autopilot.RaftChanges
	if next.promote != "" {
		out.Promotions = append(out.Promotions, raft.ServerID(next.promote))
	}
	if next.demote != "" {
		out.Demotions = append(out.Demotions, raft.ServerID(next.demote))
	}
	return out
}

// candidates translates autopilot's view of the members.
func (p promoter) candidates(s *autopilot.State, now time.Time) []candidate {
	var out []candidate
	for id, server := range s.Servers {
		n, member := server.Server.Ext.(Member)
		if !member || server.Server.NodeStatus == autopilot.NodeLeft {
			continue // on its way out
		}
		out = append(out, candidate{
			name: string(id), zone: n.Zone, draining: n.Draining,
			voter: server.HasVotingRights(), leader: server.State == autopilot.RaftLeader,
			stable: p.healths.lasts(string(id), true, stableAfter, now),
			failed: p.healths.lasts(string(id), false, FailedAfter, now),
		})
	}
	return out
}
