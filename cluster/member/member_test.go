package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/wire/simnet"
)

const port = "5986"

// streams are connections without the proofs of the cluster port.
type streams struct {
	*simnet.Host
	net.Listener
}

// world is nodes in one bubble. The first is a seed for all.
type world struct {
	t     *testing.T
	net   *simnet.Network
	nodes map[string]*node
	logs  *observer.ObservedLogs
	log   *zap.Logger
}

type node struct {
	*Gossip
	name string
	host *simnet.Host
	stop context.CancelFunc
	done sync.WaitGroup

	mu   sync.Mutex
	info Info
}

func newWorld(t *testing.T) *world {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	w := &world{t: t, net: simnet.New(1), nodes: map[string]*node{}, logs: logs, log: zap.New(core)}
	w.net.SetStandard(simnet.Link{Latency: time.Millisecond})
	return w
}

func name(i int) string { return fmt.Sprintf("n%02d@db", i) }
func ip(i int) string   { return fmt.Sprintf("192.168.0.%d", i) }

// start starts node i, that knows where the nodes with the indices known are.
func (w *world) start(i int, secret string, known ...int) *node {
	return w.startAt(i, ip(i), secret, known...)
}

func (w *world) startAt(i int, at string, secret string, known ...int) *node {
	w.t.Helper()
	host, err := w.net.Boot(at)
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := host.Listen(w.t.Context(), ":"+port)
	if err != nil {
		w.t.Fatal(err)
	}
	n := &node{name: name(i), host: host, info: Info{RPC: net.JoinHostPort(at, port), Zone: "z"}}
	addresses := map[string]string{}
	for _, k := range known {
		addresses[name(k)] = net.JoinHostPort(ip(k), port)
	}
	n.Gossip, err = New(Options{
		Self: n.name, Secret: secret, Packets: host, Streams: streams{host, l},
		Address: func() string { return ":" + port },
		Known:   func() map[string]string { return addresses },
		Info:    func() Info { n.mu.Lock(); defer n.mu.Unlock(); return n.info },
		Logger:  w.log.Named(n.name),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(w.t.Context())
	n.done.Go(func() {
		if err := n.Run(ctx); err != nil {
			w.t.Errorf("%s: %v", n.name, err)
		}
	})
	w.nodes[n.name] = n
	return n
}

// kill ends a node without a word.
func (w *world) kill(n *node) {
	n.host.Kill()
	n.end()
	delete(w.nodes, n.name)
}

func (n *node) end() {
	n.stop()
	n.done.Wait()
}

// close ends the world, and waits for what the library has still under way.
func (w *world) close() {
	for _, n := range w.nodes {
		n.end()
	}
	pass(time.Minute)
}

func pass(d time.Duration) { <-time.After(d) }

// within waits until a condition holds.
func (w *world) within(limit time.Duration, what string, ok func() bool) time.Duration {
	w.t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > limit {
			w.t.Fatalf("%s: not within %v", what, limit)
		}
		pass(10 * time.Millisecond)
	}
	return time.Since(start)
}

// agree reports whether all nodes but those see all nodes but those.
func (w *world) agree(but ...string) func() bool {
	return func() bool {
		var want []string
		for n := range w.nodes {
			if !slices.Contains(but, n) {
				want = append(want, n)
			}
		}
		slices.Sort(want)
		for _, n := range want {
			if !slices.Equal(w.nodes[n].names(), want) {
				return false
			}
		}
		return true
	}
}

func (n *node) names() []string {
	var out []string
	for _, m := range n.Members() {
		out = append(out, m.Name)
	}
	return out
}

func TestFiftyNodesConverge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		for i := 1; i <= 50; i++ {
			w.start(i, "s", 1, 2)
		}
		took := w.within(time.Minute, "50 nodes see each other", w.agree())
		t.Logf("50 nodes after %v", took)
		m := w.nodes[name(50)].Members()[0]
		if m.Name != name(1) || m.RPC != "192.168.0.1:"+port || m.Zone != "z" {
			t.Errorf("%+v", m)
		}
		if a, ok := w.nodes[name(50)].Address(name(7)); !ok || a != "192.168.0.7:"+port {
			t.Errorf("address %q", a)
		}

		w.kill(w.nodes[name(1)])
		took = w.within(time.Minute, "49 nodes miss one", w.agree())
		t.Logf("a dead node among 50 is noticed after %v", took)
		pass(time.Minute)
		if !w.agree()() {
			t.Error("the nodes do not stay agreed")
		}
		for _, e := range w.logs.FilterMessage("gossip").All() {
			t.Errorf("%s: %v", e.Message, e.ContextMap())
		}
	})
}

func TestComingAndGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		a, b, c := w.start(1, "s", 2, 3), w.start(2, "s", 1), w.start(3, "s", 1)
		var mu sync.Mutex
		var heard []string
		cancel := a.Subscribe(func(node string, up bool) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprintf("%s %v", node, up))
		})
		w.within(5*time.Second, "three nodes", w.agree())
		if !a.Alive(b.name) || !a.Alive(a.name) || a.Alive("stranger") {
			t.Error("who is alive")
		}

		b.mu.Lock()
		b.info.Draining, b.info.Load = true, 7
		b.mu.Unlock()
		b.Refresh()
		w.within(2*time.Second, "news of a node", func() bool {
			m := a.Members()[1]
			return m.Draining && m.Load == 7
		})

		b.Leave()
		took := w.within(time.Second, "a farewell", func() bool { return !a.Alive(b.name) && !c.Alive(b.name) })
		t.Logf("a farewell is heard after %v", took)
		b.end()
		b.host.Kill()
		delete(w.nodes, b.name)

		b = w.start(2, "s", 1)
		w.within(5*time.Second, "a node comes back", w.agree())
		w.kill(c)
		took = w.within(15*time.Second, "a dead node", w.agree())
		t.Logf("a dead node is noticed after %v", took)

		cancel()
		w.start(3, "s", 1)
		w.within(5*time.Second, "a dead node comes back", w.agree())
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(heard[:2])
		want := []string{b.name + " true", c.name + " true", b.name + " false", b.name + " true", c.name + " false"}
		if !slices.Equal(heard, want) {
			t.Errorf("heard %v", heard)
		}
	})
}

// A node that moves to another address keeps its name.
func TestNewAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		a := w.start(1, "s")
		w.start(2, "s", 1)
		moving := w.start(3, "s", 1)
		w.within(5*time.Second, "three nodes", w.agree())
		w.kill(moving)
		w.startAt(3, ip(23), "s", 1)
		w.within(5*time.Second, "the new address", func() bool {
			got, _ := a.Address(moving.name)
			return a.Alive(moving.name) && got == net.JoinHostPort(ip(23), port)
		})
		pass(time.Minute)
		if !w.agree()() {
			t.Error("the nodes do not stay agreed")
		}
	})
}

func TestPartitionHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		for i := 1; i <= 6; i++ {
			w.start(i, "s", 1, 2, 3, 4, 5, 6)
		}
		w.within(10*time.Second, "six nodes", w.agree())
		for i := 1; i <= 3; i++ {
			for j := 4; j <= 6; j++ {
				w.net.SetLink(ip(i), ip(j), simnet.Link{Cut: true})
				w.net.SetLink(ip(j), ip(i), simnet.Link{Cut: true})
			}
		}
		w.within(time.Minute, "two halves", func() bool {
			return len(w.nodes[name(1)].Members()) == 3 && len(w.nodes[name(6)].Members()) == 3
		})
		pass(10 * time.Minute) // longer than the library remembers the dead
		w.net.Heal()
		took := w.within(15*time.Second, "one whole", w.agree())
		t.Logf("healed after %v", took)
	})
}

// A link that is cut for one direction only must not end a node that others
// can reach.
func TestLostPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		for i := 1; i <= 5; i++ {
			w.start(i, "s", 1, 2)
		}
		w.within(10*time.Second, "five nodes", w.agree())
		w.net.SetStandard(simnet.Link{Latency: 5 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.2})
		bad := 0
		for range 200 {
			pass(time.Second)
			if !w.agree()() {
				bad++
			}
		}
		if bad > 30 { // some are suspected wrongly now and then, and say so
			t.Errorf("a fifth of the packets is lost: the nodes disagree in %d of 200 seconds", bad)
		}
	})
}

func TestAnotherSecretStaysOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		a := w.start(1, "s", 2, 3)
		w.start(2, "s", 1)
		stranger := w.start(3, "other", 1, 2)
		pass(time.Minute)
		if !w.agree(stranger.name)() || len(stranger.Members()) != 1 {
			t.Errorf("%v and %v", a.names(), stranger.names())
		}
		if n := w.logs.Len(); n > 30 {
			t.Errorf("%d lines in the log", n)
		}
	})
}

func TestInfoFits(t *testing.T) {
	long := strings.Repeat("x", 250)
	i := Info{RPC: long, HTTP: long, Zone: "z", Version: "1.2.3", Draining: true, Load: 5}
	got := decodeInfo(i.encode(512))
	if want := (Info{RPC: long, Zone: "z", Draining: true, Load: 5}); got != want {
		t.Errorf("%+v", got)
	}
	i.HTTP = "h"
	if got := decodeInfo(i.encode(512)); got != i {
		t.Errorf("%+v", got)
	}
	if got := decodeInfo([]byte("{")); got != (Info{}) {
		t.Errorf("%+v", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, o := range []Options{{}, {Self: "a"}, {Secret: "s"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// No socket: Run says so, and ends.
func TestRunWithoutSocket(t *testing.T) {
	g, err := New(Options{Self: "a", Secret: "s", Packets: noPackets{}, Address: func() string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Run(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	g.Leave()
	g.Refresh()
}

type noPackets struct{}

func (noPackets) ListenPacket(context.Context, string) (net.PacketConn, error) {
	return nil, errors.ErrUnsupported
}
