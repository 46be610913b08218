package wire

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// of makes a port part of a cluster and gathers what it refuses.
func of(origin string, foreign *[]string) func(*Port) {
	return func(p *Port) {
		p.Belong(origin)
		p.o.Foreign = func(node string) { *foreign = append(*foreign, node) }
	}
}

// Nodes of different clusters that know the same secret refuse each other, for any purpose of a
// connection and whichever node dials, and each is told once.
func TestOtherClusterIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		var byA, byB []string
		a, b := runPort(t, n, "a", of("x", &byA)), runPort(t, n, "b", of("y", &byB))
		defer a.stop()
		defer b.stop()
		b.Raft()
		b.listen(purposeRPC)
		b.Gossip()
		for _, u := range []purpose{purposeRPC, purposeRaft, purposeGossip} {
			if _, err := a.dialNode(t.Context(), u, "b@b"); err == nil || !strings.Contains(err.Error(), "another cluster") {
				t.Errorf("%v: %v", u, err)
			}
		}
		synctest.Wait()
		if !slices.Equal(byA, []string{"b@b"}) || !slices.Equal(byB, []string{"a@a"}) {
			t.Errorf("told %q and %q", byA, byB)
		}
	})
}

// A node that is part of no cluster yet reaches every node, and takes no Raft connections before it
// knows its cluster.
func TestClusterNotKnownYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a := runPort(t, n, "a", func(p *Port) { p.Belong("x") })
		b := runPort(t, n, "b", func(p *Port) { p.mu.member = false })
		var wg sync.WaitGroup
		in := b.Raft()
		echo(&wg, a.Gossip().Accept)
		echo(&wg, in.Accept)
		defer wg.Wait()
		defer a.stop()
		defer b.stop()
		if c, err := b.Gossip().Dial(t.Context(), "a:1"); err != nil {
			t.Error(err)
		} else {
			says(t, c, "who is there?")
		}
		if _, err := a.Raft().Dial("b@b", time.Second); err == nil || !strings.Contains(err.Error(), "takes no raft connections") {
			t.Errorf("before it knows: %v", err)
		}
		b.Belong("x")
		c, err := a.Raft().Dial("b@b", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		says(t, c, "now")
	})
}

// Connections that were made before a node knew its cluster end when they turn
// out to be to another one; others live on.
func TestConnectionsEndWithTheReasonForThem(t *testing.T) {
	for _, c := range []struct {
		name          string
		other, before string // what a knows, and b before it knows more
		purpose       purpose
		ends          bool
	}{
		{name: "another cluster", other: "y", purpose: purposeRPC, ends: true},
		{name: "another cluster, Raft", other: "y", purpose: purposeRaft, ends: true},
		{name: "the same cluster", other: "x", purpose: purposeRaft},
		{name: "known all along", other: "x", before: "x", purpose: purposeRaft},
		{name: "neither knew", purpose: purposeRPC},
		{name: "neither knew, Raft", purpose: purposeRaft, ends: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet()
				a := runPort(t, n, "a", func(p *Port) { p.Belong(c.other) })
				b := runPort(t, n, "b", func(p *Port) { p.Belong(c.before) })
				defer a.stop()
				defer b.stop()
				in := b.listen(c.purpose)
				conn, err := a.dialNode(t.Context(), c.purpose, "b@b")
				if err != nil {
					t.Fatal(err)
				}
				other, err := in.Accept()
				if err != nil {
					t.Fatal(err)
				}
				b.Belong("x")
				_, err = io.WriteString(other, "?")
				if ended := err != nil; ended != c.ends {
					t.Errorf("ended: %t, %v", ended, err)
				}
				_, _ = conn.Close(), other.Close()
			})
		})
	}
}

// A handshake that was under way when the cluster became known does not count.
func TestHandshakeIsOvertaken(t *testing.T) {
	p, err := NewPort(PortOptions{Self: "a@a"})
	if err != nil {
		t.Fatal(err)
	}
	p.Belong("x")
	a, b := net.Pipe()
	if _, err := p.adopt(a, agreed{node: "b@b", purpose: purposeRPC, origin: "y"}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("still open: %v", err)
	}
}

// TestGreeting: a greeting is read as it was written, and one that is cut off is none.
func TestGreeting(t *testing.T) {
	g := greeting{versions: versions{1, 1}, purpose: purposeRaft, verdict: notServed, name: "a@a", wanted: "b@b", origin: "x"}
	b := g.encode()
	if got, err := decodeGreeting(b); err != nil || got != g {
		t.Errorf("%+v %v", got, err)
	}
	for n := range b {
		if got, err := decodeGreeting(b[:n]); !errors.Is(err, errNoHello) {
			t.Errorf("%d bytes: %+v %v", n, got, err)
		}
	}
}
