package conns

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// from is the server's end of a pipe whose other end is at an address.
type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.address), 1))
}

// arrive makes a connection from an address; the pipe is closed when the test ends.
func arrive(t *testing.T, l *Limiter, address string) (c *Conn, ok bool) {
	t.Helper()
	server, client := net.Pipe()
	t.Cleanup(func() { _, _ = server.Close(), client.Close() })
	return l.Admit(from{server, address})
}

func admitted(t *testing.T, l *Limiter, address string) *Conn {
	t.Helper()
	c, ok := arrive(t, l, address)
	if !ok {
		t.Fatalf("a connection of %s was refused: %+v", address, l.Stats())
	}
	return c
}

func isClosed(c *Conn) bool {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	return c.gone
}

// TestOrderOfEviction: a silent connection goes first, then one that sends the body of an
// unauthenticated client, then an idle one; busy ones stay, and beyond the spare ones a
// new one is refused.
func TestOrderOfEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Most: 4, Spare: 1})
		idle, body, busy, silent := admitted(t, l, "::1"), admitted(t, l, "::1"), admitted(t, l, "::1"), admitted(t, l, "::1")
		silent.BeginWait()
		idle.Begin()
		idle.End()
		body.Begin()
		arrived := body.AwaitBody()
		busy.Begin()
		for i, victim := range []*Conn{silent, body, idle} {
			<-time.After(2 * idleBefore)
			if isClosed(victim) {
				t.Fatalf("the victim of step %d is closed early", i)
			}
			c := admitted(t, l, "::1")
			if !isClosed(victim) || c.Spare() {
				t.Fatalf("step %d: closed %v, spare %v", i, isClosed(victim), c.Spare())
			}
			c.Begin()
		}
		arrived() // harmless: it is gone
		spare := admitted(t, l, "::1")
		spare.Begin()
		if !spare.Spare() || isClosed(busy) {
			t.Error("a connection beyond the limit is served, or one at work was closed")
		}
		if _, ok := arrive(t, l, "::1"); ok {
			t.Error("there is no end to connections")
		}
		if err := busy.Close(); err != nil {
			t.Error(err)
		}
		if err := spare.Close(); err != nil {
			t.Error(err)
		}
		if admitted(t, l, "::1").Spare() {
			t.Error("there is space, and the connection is a spare one")
		}
		if s := l.Stats(); s != (Stats{Open: 4, Evicted: 3, Refused: 1}) {
			t.Errorf("%+v", s)
		}
	})
}

// TestFreshConnectionHasTime: a flood of connections waits until those before it
// had the time to say something, which begins when the server reads.
func TestFreshConnectionHasTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Most: 2})
		first := admitted(t, l, "::1")
		admitted(t, l, "::1")
		const busy = 3 * freshBefore
		time.AfterFunc(busy, first.BeginWait)
		began := time.Now()
		second := admitted(t, l, "::1")
		if waited := time.Since(began); waited < busy+freshBefore || waited > busy+2*freshBefore || !isClosed(first) {
			t.Errorf("waited %v, closed the first: %v", waited, isClosed(first))
		}
		began = time.Now()
		admitted(t, l, "::1")
		if waited := time.Since(began); waited > unreadBefore || isClosed(second) {
			t.Errorf("waited %v for one that is not read, closed a later one: %v", waited, isClosed(second))
		}
	})
}

// TestSparesStaySpare: connections beyond the limit do not turn into others when they make
// space for each other, so that a client that asks for the state gets in.
func TestSparesStaySpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Most: 2, Spare: 2})
		busy := admitted(t, l, "::1")
		busy.Begin()
		admitted(t, l, "::1").Begin()
		for range 5 {
			c := admitted(t, l, "::1")
			if !c.Spare() {
				t.Fatal("a connection beyond the limit is served")
			}
			c.Begin()
			c.End()
			<-time.After(2 * idleBefore)
		}
		if s := l.Stats(); s.Open != 4 || isClosed(busy) {
			t.Errorf("%+v", s)
		}
		if err := busy.Close(); err != nil {
			t.Error(err)
		}
		if admitted(t, l, "::1").Spare() {
			t.Error("there is space, and the connection is a spare one")
		}
	})
}

// TestEvictedSecret: a client of TLS that takes nothing keeps no new connection waiting.
func TestEvictedSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Most: 1})
		server, client := net.Pipe()
		secret := tls.Server(from{server, "10.0.0.2"}, serverTLS(t))
		shaken := make(chan error)
		go func() { shaken <- tls.Client(client, &tls.Config{InsecureSkipVerify: true}).Handshake() }()
		if err := errors.Join(secret.Handshake(), <-shaken); err != nil {
			t.Fatal(err)
		}
		idle, _ := l.Admit(secret)
		idle.Begin()
		idle.End()
		<-time.After(2 * idleBefore)
		began := time.Now()
		admitted(t, l, "10.0.0.3")
		if took := time.Since(began); took != 0 || !isClosed(idle) {
			t.Errorf("another connection has waited %v", took)
		}
		_ = client.Close() // never fails
	})
}

// serverTLS returns a configuration with a key of its own.
func serverTLS(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)},
		&x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{text}, PrivateKey: key}}, SessionTicketsDisabled: true}
}

// TestShare: one address has its share, this machine and trusted proxies what they
// need; what is closed counts no more.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proxy := netip.MustParseAddr("10.0.0.1")
		l := New(Options{Most: 100, Share: func() int { return 2 }, Trusted: func(a netip.Addr) bool { return a == proxy }})
		for range 5 {
			admitted(t, l, "127.0.0.1").Begin()
			admitted(t, l, "10.0.0.1").Begin()
		}
		other := admitted(t, l, "10.0.0.3")
		one, two := admitted(t, l, "10.0.0.2"), admitted(t, l, "::ffff:10.0.0.2")
		one.Begin()
		two.Begin()
		if _, ok := arrive(t, l, "10.0.0.2"); ok {
			t.Error("an address has more than its share")
		}
		two.End()
		<-time.After(2 * idleBefore)
		three := admitted(t, l, "10.0.0.2")
		three.Begin()
		if !isClosed(two) || isClosed(other) {
			t.Error("another address has paid for a new connection")
		}
		if err := errors.Join(one.Close(), three.Close()); err != nil {
			t.Error(err)
		}
		for _, host := range []string{"1", "2", "3:4:5"} {
			if c, ok := arrive(t, l, "2001:db8:0:1::"+host); ok != (host != "3:4:5") {
				t.Errorf("a network of IPv6 has its share: %s %t", host, ok)
			} else if ok {
				c.Begin()
			}
		}
		admitted(t, l, "2001:db8:0:2::1")
		if len(l.mu.addresses) != 3 {
			t.Errorf("%v", l.mu.addresses)
		}
		admitted(t, l, "10.0.0.2")
	})
}

// TestReaderThatTakesNothing: writes to a client that reads nothing end after a
// minute; one that takes a piece now and then has as long as it likes.
func TestReaderThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{})
		server, client := net.Pipe()
		c, _ := l.Admit(from{server, "10.0.0.2"})
		answer, taken := make([]byte, 10*writePiece), make(chan error)
		go func() {
			piece := make([]byte, writePiece)
			for range 8 {
				<-time.After(readerPatience / 2)
				for n := 0; n < len(piece); {
					m, err := client.Read(piece[n:])
					if n += m; err != nil {
						taken <- err
						return
					}
				}
			}
			taken <- nil
		}()
		began := time.Now()
		n, err := c.Write(answer)
		if n != 8*writePiece || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 6*readerPatience {
			t.Errorf("%d bytes in %v: %v", n, time.Since(began), err)
		}
		if err := errors.Join(<-taken, c.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestNextAnswerHasItsDeadline: net/http lifts the deadline of writes after an answer; the
// next one on the same connection has one all the same.
func TestNextAnswerHasItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		c, _ := New(Options{}).Admit(from{server, "10.0.0.2"})
		go func() { _, _ = io.ReadFull(client, make([]byte, 5)) }()
		if _, err := c.Write([]byte("first")); err != nil {
			t.Fatal(err)
		}
		if err := c.SetWriteDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := c.Write([]byte("second")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > readerPatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := errors.Join(c.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestWithoutConnection: a request that came another way has no connection.
func TestWithoutConnection(t *testing.T) {
	c := From(context.Background())
	c.Begin()
	c.AwaitBody()()
	c.End()
	if c.Spare() {
		t.Error("spare")
	}
}
