package meta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta/metapb"
	"divan/cluster/meta/voters"
	"divan/storage/fault"
)

// testCluster is a number of nodes on a network that can be cut.
type testCluster struct {
	t     *testing.T
	mu    sync.Mutex
	nodes []*testNode
	lost  func(from, to string) bool // whether an answer gets lost; may be nil; called under mu

	meanwhile func(*metapb.Request) // is called when a request has left and has not arrived; may be nil
}

// testNode is one node.
type testNode struct {
	name      string
	zone      string
	stores    *Stores
	versions  versions // zero: this program's
	log       *zap.Logger
	meta      *Meta
	transport *raft.InmemTransport
	ended     chan error
	running   bool
	founder   bool
	full      atomic.Bool            // its disk
	hung      atomic.Bool            // it answers no question
	answered  atomic.Pointer[func()] // is called when a message of Raft's was answered and the sender does not know it; may be nil
	side      int                    // of the network; nodes on different sides cannot reach each other
	mute      bool                   // its Raft is cut off, and it can be asked all the same
}

// testTransport is the transport of a node.
type testTransport struct {
	*raft.InmemTransport
	node *testNode
}

func (t testTransport) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	err := t.InmemTransport.AppendEntries(id, to, args, resp)
	if f := t.node.answered.Load(); f != nil {
		(*f)()
	}
	return err
}

// unsent is the error of a request that never left.
type unsent struct{}

func (unsent) Error() string { return "cannot connect" }
func (unsent) NotSent() bool { return true }

// newTestCluster founds a group on the first node and lets the others join it;
// the first five vote when it returns.
func newTestCluster(t *testing.T, n int) *testCluster {
	t.Helper()
	g := &testCluster{t: t}
	t.Cleanup(g.close)
	for i := range n {
		g.add(fmt.Sprintf("n%d@host", i), "")
	}
	g.nodes[0].founder = true
	g.start(0)
	for i := 1; i < n; i++ {
		g.start(i)
	}
	for i := range n {
		g.waitReady(i)
	}
	g.wait("voters", func() bool { // all have to know: what only the leader has may be undone
		return !slices.ContainsFunc(g.nodes, func(p *testNode) bool { return len(p.meta.Voters()) != voters.Target(n) })
	})
	return g
}

// add makes a node that does not run yet.
func (g *testCluster) add(name, zone string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes = append(g.nodes, &testNode{name: name, zone: zone, stores: memoryStores(), log: zap.NewNop()})
	return len(g.nodes) - 1
}

func (g *testCluster) start(i int) {
	g.t.Helper()
	p := g.nodes[i]
	_, p.transport = raft.NewInmemTransportWithTimeout(raft.ServerAddress(p.name), 100*time.Millisecond)
	m, err := New(Options{
		Self: Node{Name: p.name, Zone: p.zone}, Config: holder(g.t, config.Options{}), Transport: testTransport{p.transport, p}, Stores: p.stores, Logger: p.log,
		Found: func(context.Context) (BootstrapPlan, error) { return g.founding(i), nil },
		Ask:   func(ctx context.Context, to string, b []byte) ([]byte, error) { return g.ask(ctx, p, to, b) },
		Alive: func(name string) bool { return g.reachable(p.name, name) != nil },
		DiskFull: func() error {
			if p.full.Load() {
				return errors.New("full")
			}
			return nil
		},
	})
	if err != nil {
		g.t.Fatal(err)
	}
	if p.versions.needed != nil {
		m.fsm.versions = p.versions
	}
	g.mu.Lock()
	p.meta, p.running, p.ended = m, true, make(chan error, 1)
	g.mu.Unlock()
	g.wire()
	go func() { p.ended <- m.Run(g.t.Context()) }()
}

func (g *testCluster) founding(i int) BootstrapPlan {
	if g.nodes[i].founder {
		return BootstrapPlan{New: true}
	}
	var f BootstrapPlan
	for j, p := range g.nodes {
		if j != i {
			f.Seeds = append(f.Seeds, p.name)
		}
	}
	return f
}

// stop ends a node; its stores stay.
func (g *testCluster) stop(i int) {
	g.t.Helper()
	p := g.nodes[i]
	if !p.running {
		return
	}
	err := errors.Join(p.meta.Close(), <-p.ended)
	g.mu.Lock()
	p.running = false
	g.mu.Unlock()
	g.wire()
	if err = errors.Join(err, p.transport.Close()); err != nil {
		g.t.Error(err)
	}
}

func (g *testCluster) close() {
	g.heal() // a leader that still waits for an answer cannot stop
	for i := range g.nodes {
		g.stop(i)
	}
	<-time.After(10 * time.Second) // Raft does not wait for a hand-over that is not answered
}

// cut puts nodes on a side of their own.
func (g *testCluster) cut(nodes ...int) {
	g.mu.Lock()
	for _, i := range nodes {
		g.nodes[i].side = 1 + nodes[0]
	}
	g.mu.Unlock()
	g.wire()
}

// muteRaft cuts the Raft of a node off, or has it back.
func (g *testCluster) muteRaft(i int, mute bool) {
	g.mu.Lock()
	g.nodes[i].mute = mute
	g.mu.Unlock()
	g.wire()
}

// lose says which answers get lost from now on.
func (g *testCluster) lose(lost func(from, to string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = lost
}

// during has f called while a request is on its way.
func (g *testCluster) during(f func(*metapb.Request)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meanwhile = f
}

// heal puts all nodes on one side.
func (g *testCluster) heal() {
	g.mu.Lock()
	for _, p := range g.nodes {
		p.side = 0
	}
	g.mu.Unlock()
	g.wire()
}

// loseDisk takes everything from a node that does not run.
func (g *testCluster) loseDisk(i int) { g.nodes[i].stores, g.nodes[i].founder = memoryStores(), false }

// wire connects the transports of those who can reach each other.
func (g *testCluster) wire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.nodes {
		if a.transport == nil {
			continue
		}
		for _, b := range g.nodes {
			if a == b || b.transport == nil {
				continue
			}
			if a.running && b.running && a.side == b.side && !a.mute && !b.mute {
				a.transport.Connect(b.transport.LocalAddr(), b.transport)
			} else {
				a.transport.Disconnect(b.transport.LocalAddr())
			}
		}
	}
}

// reachable returns the node to, if from can reach it.
func (g *testCluster) reachable(from, to string) *testNode {
	g.mu.Lock()
	defer g.mu.Unlock()
	var a, b *testNode
	for _, p := range g.nodes {
		if p.name == from {
			a = p
		}
		if p.name == to && p.running {
			b = p
		}
	}
	if a == b || a == nil || b == nil || a.side != b.side {
		return nil
	}
	return b
}

func (g *testCluster) ask(ctx context.Context, from *testNode, to string, b []byte) ([]byte, error) {
	p := g.reachable(from.name, to)
	if p == nil {
		return nil, unsent{}
	}
	if p.hung.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	g.mu.Lock()
	meanwhile := g.meanwhile
	g.mu.Unlock()
	if meanwhile != nil {
		req, err := decodeRequest(b)
		if err != nil {
			return nil, err
		}
		meanwhile(req)
	}
	out, err := p.meta.Answer(ctx, from.name, b)
	g.mu.Lock()
	lost := g.lost != nil && g.lost(from.name, to)
	g.mu.Unlock()
	if lost || g.reachable(from.name, to) == nil {
		return nil, fault.Newf(fault.NodeDown, "%s is down", to)
	}
	return out, err
}

func (g *testCluster) meta(i int) *Meta { return g.nodes[i].meta }

func (g *testCluster) waitReady(i int) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), 20*time.Second)
	defer cancel()
	if err := g.meta(i).WaitReady(ctx); err != nil {
		g.t.Fatalf("node %d is not ready: %v", i, err)
	}
}

// wait polls a condition for a minute of the bubble's time.
func (g *testCluster) wait(what string, ok func() bool) {
	g.t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for range 600 {
		if ok() {
			return
		}
		<-again.C
	}
	g.t.Fatalf("never came true: %s", what)
}

// leader waits for a running node that is not cut off and leads.
func (g *testCluster) leader() int {
	g.t.Helper()
	found := -1
	g.wait("a leader", func() bool {
		found = slices.IndexFunc(g.nodes, func(p *testNode) bool {
			return p.running && p.side == 0 && p.meta.term.Load() != 0 && p.meta.CatchUp(g.t.Context()) == nil && p.meta.Leader() == p.name
		})
		return found >= 0
	})
	return found
}

// follower returns a running node, within reach, that does not lead.
func (g *testCluster) follower() int {
	g.t.Helper()
	leader := g.leader()
	return slices.IndexFunc(g.nodes, func(p *testNode) bool { return p.running && p.side == 0 && p != g.nodes[leader] })
}

// reloadable has Raft keep nothing of the log behind a snapshot.
func reloadable(m *Meta) raft.ReloadableConfig {
	c := m.raft.Load().ReloadableConfig()
	c.TrailingLogs = 1
	return c
}
