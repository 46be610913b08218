package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// visit is a connection from an address that notes when it is closed.
type visit struct {
	net.Conn
	from   memAddr
	closed atomic.Bool
}

func (v *visit) RemoteAddr() net.Addr { return v.from }
func (v *visit) Close() error         { v.closed.Store(true); return nil }

func TestHandshakeLimiterShares(t *testing.T) {
	d, now := newHandshakeLimiter(), time.Now()
	enter := func(host string, n int) (all []*visit, done []func()) {
		for i := range n {
			v := &visit{from: memAddr(fmt.Sprintf("%s:%d", host, i))}
			now = now.Add(longestStrangerRest) // one with its share has to rest
			leave, ok := d.enter(v, now)
			if !ok {
				t.Fatalf("%s is refused", v.from)
			}
			all, done = append(all, v), append(done, leave)
		}
		return all, done
	}
	closed := func(all []*visit) (n int) {
		for _, v := range all {
			if v.closed.Load() {
				n++
			}
		}
		return n
	}
	d.proven(memAddr("10.0.0.2:99"))
	node, left := enter("10.0.0.2", maxUnfinished)
	flood, _ := enter("192.0.2.1", 1000)
	other, _ := enter("192.0.2.2", 1)
	if closed(node) != 0 || closed(other) != 0 || closed(flood) != len(flood)-strangerShare {
		t.Errorf("closed: %d of a node, %d of a flood, %d of another", closed(node), closed(flood), closed(other))
	}
	for i := range 300 {
		enter(fmt.Sprintf("2001:db8:0:%x::1", i), 1)
	}
	if closed(flood) != len(flood) || closed(other) != 1 {
		t.Error("old handshakes of strangers do not give way")
	}
	if n := d.mu.strangers.Len(); n != maxStrangers {
		t.Errorf("%d handshakes of strangers", n)
	}
	if closed(node) != 0 {
		t.Error("strangers drive out a node")
	}
	more, _ := enter("10.0.0.2", 3)
	if closed(node) != 3 || closed(more) != 0 {
		t.Error("a node has no end of handshakes")
	}
	for _, leave := range left {
		leave()
		leave()
	}
	if n := d.mu.ours.Len(); n != 3 {
		t.Errorf("%d handshakes are left", n)
	}
}

// TestFloodOfOneHostRests: a host that begins more handshakes than it may have gets in one more at
// the cost of its oldest, and rests then. One that gives them up rests after some.
func TestFloodOfOneHostRests(t *testing.T) {
	d, now := newHandshakeLimiter(), time.Now()
	for i := range strangerShare + 1 {
		if _, ok := d.enter(&visit{from: "192.0.2.1:1"}, now); !ok {
			t.Fatalf("attempt %d is refused", i)
		}
	}
	if v := (&visit{from: "192.0.2.1:1"}); !v.refused(d, now) || v.refused(d, now.Add(strangerRest)) {
		t.Error("a flood does not rest, or too long")
	}
	for i := range mostAbandoned + 1 {
		if v := (&visit{from: "192.0.2.2:1"}); v.refused(d, now) {
			t.Errorf("rests after %d handshakes that were given up", i)
		}
		d.failed(memAddr("192.0.2.2:1"), fmt.Errorf("handshake: %w", errAbandoned), now)
	}
	if v := (&visit{from: "192.0.2.2:1"}); !v.refused(d, now) {
		t.Error("handshakes that are given up are for nothing")
	}
}

// TestHandshakeLimiterSlowsDown has a host that rests connect again and again.
func TestHandshakeLimiterSlowsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHandshakeLimiter()
		from := memAddr("192.0.2.1:1")
		for range 20 {
			d.failed(from, errSecret, time.Now())
		}
		closed := func(all []*visit) (n int) {
			for _, v := range all {
				if v.closed.Load() {
					n++
				}
			}
			return n
		}
		for range 3 {
			var all []*visit
			for range maxHeld + 5 {
				v := &visit{from: from}
				if !v.refused(d, time.Now()) {
					t.Fatal("let in")
				}
				all = append(all, v)
			}
			if n := closed(all); n != 5 {
				t.Errorf("%d are closed at once", n)
			}
			rest(t.Context(), holdTime)
			synctest.Wait()
			if n := closed(all); n != len(all) {
				t.Errorf("%d are closed in the end", n)
			}
		}
	})
}

func TestHandshakeLimiterRests(t *testing.T) {
	d, now := newHandshakeLimiter(), time.Now()
	from := func(port int) *visit { return &visit{from: memAddr(fmt.Sprintf("[2001:db8::%x]:%d", port, port))} }
	told := 0
	for i, ms := range []int64{100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000} {
		pause := time.Duration(ms) * time.Millisecond
		if _, ok := d.enter(from(i), now); !ok {
			t.Fatalf("attempt %d is refused", i)
		}
		if d.failed(from(i).from, fmt.Errorf("handshake: %w", errSecret), now) {
			told++
		}
		now = now.Add(pause - 1)
		if v := from(i); !v.refused(d, now) {
			t.Errorf("after failure %d: lets in again too early", i+1)
		}
		now = now.Add(1)
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	silent := memAddr("192.0.2.1:1")
	for _, harmless := range []error{io.EOF, net.ErrClosed, context.Canceled, &foreignError{}} {
		if d.failed(silent, harmless, now) || (&visit{from: silent}).refused(d, now) {
			t.Errorf("%v is a failure", harmless)
		}
	}
	for i, failure := range []error{os.ErrDeadlineExceeded, errNoHello} {
		from := memAddr(fmt.Sprintf("198.51.100.%d:1", i))
		if d.failed(from, fmt.Errorf("handshake: %w", failure), now) || !(&visit{from: from}).refused(d, now) {
			t.Errorf("%v is no failure, or is told", failure)
		}
	}
	d.proven(silent)
	if d.failed(silent, errSecret, now); (&visit{from: silent}).refused(d, now) {
		t.Error("the host of a node has to rest")
	}
	for i := range 3 * maxHosts {
		d.failed(memAddr(fmt.Sprintf("10.%d.%d.1:1", i/250, i%250)), errSecret, now)
		d.proven(memAddr(fmt.Sprintf("11.%d.%d.1:1", i/250, i%250)))
	}
	if d.mu.others.Len() != maxHosts || len(d.mu.nodes) > maxHosts {
		t.Errorf("%d and %d hosts are remembered", d.mu.others.Len(), len(d.mu.nodes))
	}
}

// refused reports whether the limiter does not let a connection in.
func (v *visit) refused(d *handshakeLimiter, now time.Time) bool {
	leave, ok := d.enter(v, now)
	if ok {
		leave()
	}
	return !ok
}

// TestWrongProofIsToldOnce has a node with another secret try again and again.
func TestWrongProofIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		core, logs := observer.New(zap.WarnLevel)
		a := runPort(t, n, "a", func(p *Port) { p.o.Logger = zap.New(core) })
		b := runPort(t, n, "b", func(p *Port) { p.o.Secret = func() string { return "another secret" } })
		defer a.stop()
		defer b.stop()
		a.Raft()
		for range 20 {
			if _, err := b.Raft().Dial(raft.ServerAddress("a@a"), time.Second); err == nil {
				t.Fatal("let in")
			}
			rest(t.Context(), 3*time.Second)
		}
		list := logs.FilterMessage("refused a connection").All()
		if len(list) != 1 || !strings.Contains(fmt.Sprint(list[0].ContextMap()), "does not know the cluster's secret") {
			t.Errorf("%d lines: %v", len(list), list)
		}
	})
}

// TestMembersAreKnown: who has proven itself, either way, is no stranger any more.
func TestMembersAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a, b := runPort(t, n, "a", nil), runPort(t, n, "b", nil)
		defer a.stop()
		defer b.stop()
		a.Raft()
		conn, err := b.Raft().Dial(raft.ServerAddress("a@a"), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !knows(b.limiter, conn.RemoteAddr()) {
			t.Error("the node that was dialed")
		}
		if !knows(a.limiter, conn.LocalAddr()) {
			t.Error("the node that has dialed")
		}
		_ = conn.Close()
	})
}

// knows reports whether a node has proven itself at a host.
func knows(d *handshakeLimiter, a net.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.nodes[hostOf(a)] != nil
}

// TestOtherSecretLearnsNothing looks at what either side says to one that has another secret.
func TestOtherSecretLearnsNothing(t *testing.T) {
	node := identity{name: "hidden@10.0.0.1", origin: "cluster-id", secret: "a secret", versions: versions{1, 2}, binding: []byte("x")}
	stranger := node
	stranger.name, stranger.secret = "x@x", "another secret"
	var heard bytes.Buffer
	listen := func(rw io.ReadWriter, id identity) error {
		_, err := id.admit(rw, func(purpose) bool { return true })
		return err
	}
	dial := func(rw io.ReadWriter, id identity) error {
		_, err := id.greet(rw, purposeRPC, "other@10.0.0.2")
		return err
	}
	for name, c := range map[string]struct {
		node, stranger func(io.ReadWriter, identity) error
		want           error
	}{"listener": {listen, dial, errSecret}, "dialer": {dial, listen, errRefused}} {
		heard.Reset()
		a, b := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.stranger(b, stranger); err == nil {
				t.Errorf("%s: a stranger got in", name)
			}
		})
		if err := c.node(tee{a, &heard}, node); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		wg.Wait()
		for _, secret := range []string{"hidden", "other@", node.origin} {
			if strings.Contains(heard.String(), secret) {
				t.Errorf("the %s tells %q", name, secret)
			}
		}
		if name == "listener" && heard.String() != "\x00\x04"+magic {
			t.Errorf("a listener says %q", heard.String())
		}
		_, _ = a.Close(), b.Close()
	}
}

// TestVersionsAgree: two sides agree on the newest version that both speak.
func TestVersionsAgree(t *testing.T) {
	shake := func(dialer, listener identity) (a, b agreed) {
		x, y := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() {
			var err error
			if a, err = dialer.greet(x, purposeRPC, "b@b"); err != nil {
				t.Errorf("greet: %v", err)
			}
		})
		b, err := listener.admit(y, func(purpose) bool { return true })
		if err != nil {
			t.Errorf("admit: %v", err)
		}
		wg.Wait()
		return a, b
	}
	for _, c := range []struct{ dialer, listener versions }{
		{versions{1, 1}, versions{1, 1}}, {versions{1, 1}, versions{1, 2}}, {versions{1, 2}, versions{1, 1}}, {versions{1, 2}, versions{1, 2}},
	} {
		a, b := shake(
			identity{name: "a@a", origin: "o", secret: "a secret", versions: c.dialer, binding: []byte("x")},
			identity{name: "b@b", origin: "o", secret: "a secret", versions: c.listener, binding: []byte("x")},
		)
		want, _ := c.dialer.common(c.listener)
		if a.version != want || a.node != "b@b" || a.origin != "o" || b.node != "a@a" || b.origin != "o" || a.version != b.version {
			t.Errorf("%v: %+v %+v", c, a, b)
		}
	}
}
