package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"divan/cluster/config"
	"divan/cluster/meta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// group is a number of real nodes of the metadata group, each with a Table, on a
// network that can be cut.
type group struct {
	t     *testing.T
	mu    sync.Mutex
	nodes []*node
}

// node is one of them; its stores outlive it.
type node struct {
	name      string
	stores    *meta.Stores
	transport *raft.InmemTransport
	meta      *meta.Meta
	table     *Table
	stop      func()
	running   bool
	side      int // of the network; nodes on different sides cannot reach each other
}

// unsent is the error of a request that never left.
type unsent struct{}

func (unsent) Error() string { return "cannot connect" }
func (unsent) NotSent() bool { return true }

func newGroup(t *testing.T, n int) *group {
	t.Helper()
	g := &group{t: t}
	t.Cleanup(func() {
		g.heal()
		for i := range g.nodes {
			g.stop(i)
		}
		<-time.After(10 * time.Second) // Raft does not wait for a hand-over that is not answered
	})
	for i := range n {
		mem := raft.NewInmemStore()
		stores := &meta.Stores{Log: mem, Stable: mem, Snapshots: raft.NewInmemSnapshotStore()}
		g.nodes = append(g.nodes, &node{name: fmt.Sprintf("n%d@host", i), stores: stores})
	}
	for i := range n {
		g.start(i)
	}
	g.within(time.Minute, "all vote", func() bool { // all have to know: what only the leader has may be undone
		return !slices.ContainsFunc(g.nodes, func(p *node) bool { return len(p.meta.Voters()) != n })
	})
	return g
}

func (g *group) start(i int) {
	g.t.Helper()
	p := g.nodes[i]
	h, err := config.New(config.Options{})
	if err != nil {
		g.t.Fatal(err)
	}
	_, p.transport = raft.NewInmemTransportWithTimeout(raft.ServerAddress(p.name), 100*time.Millisecond)
	alive := func(name string) bool { return g.reachable(p.name, name) != nil }
	m, err := meta.New(meta.Options{
		Self: meta.Node{Name: p.name}, Config: h, Transport: p.transport, Stores: p.stores, Alive: alive,
		Found: func(context.Context) (meta.BootstrapPlan, error) {
			return meta.BootstrapPlan{New: i == 0, Seeds: g.others(i)}, nil
		},
		Ask: func(ctx context.Context, to string, b []byte) ([]byte, error) { return g.ask(ctx, p.name, to, b) },
	})
	if err != nil {
		g.t.Fatal(err)
	}
	table := New(Options{Meta: m, Alive: alive})
	ctx, cancel := context.WithCancel(g.t.Context())
	ended := make(chan error, 2)
	go func() { ended <- m.Run(ctx) }()
	go func() { ended <- table.Run(ctx) }()
	g.mu.Lock()
	p.meta, p.table, p.running = m, table, true
	p.stop = func() {
		cancel()
		if err := errors.Join(<-ended, <-ended, p.transport.Close()); err != nil {
			g.t.Error(err)
		}
	}
	g.mu.Unlock()
	g.wire()
}

// others are the nodes that a node joins; the first one founds the group.
func (g *group) others(i int) []string {
	if i == 0 {
		return nil
	}
	return []string{g.nodes[0].name}
}

func (g *group) stop(i int) {
	g.t.Helper()
	p := g.nodes[i]
	if !p.running {
		return
	}
	g.mu.Lock()
	p.running = false
	g.mu.Unlock()
	g.wire() // as when it is killed: no node hears of it any more
	p.stop()
}

func (g *group) cut(nodes ...int) {
	g.mu.Lock()
	for _, i := range nodes {
		g.nodes[i].side = 1 + nodes[0]
	}
	g.mu.Unlock()
	g.wire()
}

func (g *group) heal() {
	g.mu.Lock()
	for _, p := range g.nodes {
		p.side = 0
	}
	g.mu.Unlock()
	g.wire()
}

// wire connects the transports of those who can reach each other.
func (g *group) wire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.nodes {
		for _, b := range g.nodes {
			switch {
			case a == b || a.transport == nil || b.transport == nil:
			case a.running && b.running && a.side == b.side:
				a.transport.Connect(b.transport.LocalAddr(), b.transport)
			default:
				a.transport.Disconnect(b.transport.LocalAddr())
			}
		}
	}
}

// reachable returns the Meta of a node, if from can reach it.
func (g *group) reachable(from, to string) *meta.Meta {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := func(name string) *node {
		return g.nodes[slices.IndexFunc(g.nodes, func(p *node) bool { return p.name == name })]
	}
	a, b := at(from), at(to)
	if !a.running || !b.running || a.side != b.side {
		return nil
	}
	return b.meta
}

func (g *group) ask(ctx context.Context, from, to string, b []byte) ([]byte, error) {
	m := g.reachable(from, to)
	if m == nil {
		return nil, unsent{}
	}
	out, err := m.Answer(ctx, from, b)
	if g.reachable(from, to) == nil {
		return nil, errors.New("the answer got lost")
	}
	return out, err
}

// running returns the nodes that run now.
func (g *group) runningNodes() []*node {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []*node
	for _, p := range g.nodes {
		if p.running {
			out = append(out, &node{name: p.name, meta: p.meta, table: p.table})
		}
	}
	return out
}

// mine counts the slots that a node takes for its own.
func (p *node) mine() int {
	n := 0
	for slot := range meta.SlotCount {
		if _, ok := p.table.Mine(slot); ok {
			n++
		}
	}
	return n
}

// slots returns who owns what, after everything that was acknowledged.
func (g *group) slots(i int) meta.Slots {
	g.t.Helper()
	if err := g.nodes[i].meta.CatchUp(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
	return *g.nodes[i].meta.Slots.Owners()
}

// within waits until ok, and fails when that takes longer than d.
func (g *group) within(d time.Duration, what string, ok func() bool) time.Duration {
	g.t.Helper()
	begin := time.Now()
	for !ok() {
		if time.Since(begin) > d {
			var state []string
			for _, p := range g.runningNodes() {
				state = append(state, fmt.Sprintf("%s owns %d", p.name, p.mine()))
			}
			g.t.Fatalf("not within %v: %s; %v", d, what, state)
		}
		<-time.After(50 * time.Millisecond)
	}
	return time.Since(begin)
}

// even reports whether nodes own all slots, as many each.
func (g *group) even(nodes ...int) bool {
	all := 0
	for _, i := range nodes {
		n := g.nodes[i].mine()
		if n < meta.SlotCount/len(nodes) {
			return false
		}
		all += n
	}
	return all == meta.SlotCount
}
