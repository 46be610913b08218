package wire

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/storage/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running is a port that runs until stop.
type running struct {
	*Port
	stop func()
}

// runPort starts a port of node a@a on host a, port 1, or as change says.
func runPort(t *testing.T, n *memNet, host string, change func(*Port)) running {
	t.Helper()
	p, err := NewPort(PortOptions{
		Self: host + "@" + host, Network: n.host(host), Address: host + ":1",
		Secret: func() string { return "a secret" },
		Resolve: func(node string) (string, bool) {
			_, host, ok := strings.Cut(node, "@")
			return host + ":1", ok
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Belong("")
	if change != nil {
		change(p)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	<-p.Listening()
	var once sync.Once
	r := running{Port: p, stop: func() { once.Do(func() { cancel(); wg.Wait() }) }}
	t.Cleanup(r.stop)
	return r
}

// echo answers each connection with what it sends.
func echo(wg *sync.WaitGroup, accept func() (net.Conn, error)) {
	wg.Go(func() {
		for {
			c, err := accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
}

func says(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(text))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != text {
		t.Fatalf("heard %q, %v", b, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a, b := runPort(t, n, "a", nil), runPort(t, n, "b", nil)
		var wg sync.WaitGroup
		echo(&wg, b.Raft().Accept)
		echo(&wg, b.Gossip().Accept)
		layer := a.Raft()
		if layer.Addr().String() != "a@a" {
			t.Fatalf("address %q", layer.Addr())
		}
		c, err := layer.Dial("b@b", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		says(t, c, "raft")
		c, err = a.Gossip().Dial(t.Context(), "b:1")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.(*Conn).Node(); got != "b@b" {
			t.Fatalf("proven to be %q", got)
		}
		says(t, c, "gossip")
		if err := layer.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Raft().Dial("a@a", time.Second); err == nil || !strings.Contains(err.Error(), "takes no raft connections") {
			t.Fatalf("dialing a closed layer: %v", err)
		}
		a.stop()
		b.stop()
		wg.Wait()
		if _, err := layer.Dial(raft.ServerAddress("b@b"), time.Second); !fault.Is(err, fault.Closed) {
			t.Fatalf("dialing from a closed port: %v", err)
		}
	})
}

func TestHandshakeRefuses(t *testing.T) {
	secret := func(s string) func(*Port) { return func(p *Port) { p.o.Secret = func() string { return s } } }
	speaks := func(low, high uint16) func(*Port) { return func(p *Port) { p.versions = versions{low, high} } }
	for _, c := range []struct {
		name         string
		dial, listen func(*Port)
		node         string
		want         string
	}{
		{name: "another secret", dial: secret("x"), node: "b@b", want: "did not accept the cluster's secret"},
		{name: "dialer without secret", dial: secret(""), node: "b@b", want: "no cluster secret"},
		// It hangs up without a word, while the other one may still be sending.
		{name: "listener without secret", listen: secret(""), node: "b@b", want: "dial b:1: handshake: "},
		{name: "another node", node: "c@b", want: `node "b@b" answers where "c@b" was expected`},
		{name: "unknown node", node: "nobody", want: "not known here"},
		{name: "only newer", dial: speaks(3, 4), node: "b@b", want: "protocol versions 1 to 1, this node 3 to 4"},
		{name: "only older", listen: speaks(5, 6), node: "b@b", want: "protocol versions 5 to 6, this node 1 to 1"},
		{name: "nobody there", node: "z@z", want: "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet()
				a, b := runPort(t, n, "a", c.dial), runPort(t, n, "b", c.listen)
				defer a.stop()
				defer b.stop()
				b.Raft()
				conn, err := a.Raft().Dial(raft.ServerAddress(c.node), time.Second)
				if conn != nil || err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v, want %q", err, c.want)
				}
				if !fault.Is(err, fault.NodeDown) {
					t.Fatalf("kind %d", fault.KindOf(err))
				}
			})
		})
	}
}

func TestVersionsMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a := runPort(t, n, "a", func(p *Port) { p.versions = versions{2, 7} })
		b := runPort(t, n, "b", func(p *Port) { p.versions = versions{1, 4} })
		defer a.stop()
		defer b.stop()
		in := b.Gossip()
		c, err := a.Gossip().Dial(t.Context(), "b:1")
		if err != nil {
			t.Fatal(err)
		}
		other, err := in.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if c.(*Conn).Version() != 4 || other.(*Conn).Version() != 4 {
			t.Fatalf("versions %d, %d", c.(*Conn).Version(), other.(*Conn).Version())
		}
	})
}

// pass runs the handshake of two sides and returns their outcomes.
func pass(dialer, listener identity) (dialed, admitted error) {
	a, b := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, dialed = dialer.greet(a, purposeRPC, listener.name)
		_ = a.Close()
	})
	_, admitted = listener.admit(b, func(purpose) bool { return true })
	_ = b.Close()
	wg.Wait()
	return dialed, admitted
}

// TestSealsOfOtherConnections: what was sealed for another connection, or by the other role,
// proves nothing.
func TestSealsOfOtherConnections(t *testing.T) {
	on := func(name, connection string) identity {
		return identity{name: name, secret: "a secret", versions: versions{1, 1}, binding: []byte(connection)}
	}
	a, b := net.Pipe()
	var sent bytes.Buffer
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := on("a@a", "1").greet(tee{a, &sent}, purposeRPC, "b@b"); err != nil {
			t.Errorf("greet: %v", err)
		}
	})
	if _, err := on("b@b", "1").admit(b, func(purpose) bool { return true }); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	wg.Go(func() { _, _ = io.Copy(io.Discard, a) })
	wg.Go(func() { _, _ = a.Write(sent.Bytes()) })
	if _, err := on("b@b", "2").admit(b, func(purpose) bool { return true }); !errors.Is(err, errSecret) {
		t.Fatalf("replayed: %v", err)
	}
	_, _ = a.Close(), b.Close()
	wg.Wait()
	if dialed, admitted := pass(on("a@a", "1"), on("b@b", "2")); !errors.Is(dialed, errRefused) || !errors.Is(admitted, errSecret) {
		t.Errorf("two connections: %v, %v", dialed, admitted)
	}
	if dialed, admitted := pass(on("a@a", ""), on("b@b", "")); dialed == nil || !errors.Is(admitted, errNoProof) {
		t.Errorf("without TLS: %v, %v", dialed, admitted)
	}
	// A listener that sends everything back learns nothing either.
	wg = sync.WaitGroup{}
	a, b = net.Pipe()
	wg.Go(func() { _, _ = io.Copy(b, b) })
	if _, err := on("a@a", "1").greet(a, purposeRPC, ""); !errors.Is(err, errSecret) {
		t.Fatalf("a mirror: %v", err)
	}
	_, _ = a.Close(), b.Close()
	wg.Wait()
}

type tee struct {
	net.Conn
	sent *bytes.Buffer
}

func (t tee) Write(b []byte) (int, error) {
	t.sent.Write(b)
	return t.Conn.Write(b)
}

func TestUnfinishedHandshakesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a := runPort(t, n, "a", nil)
		defer a.stop()
		a.Raft()
		start := time.Now()
		silent := make([]net.Conn, strangerShare+1)
		for i := range silent {
			c, err := n.host("x").Dial(t.Context(), "a:1")
			if err != nil {
				t.Fatal(err)
			}
			silent[i] = c
			synctest.Wait()
		}
		for i, c := range silent {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Fatal("a silent connection was spoken to")
			}
			if closed := time.Since(start); i == 0 && closed != 0 || i > 0 && closed != handshakeTime {
				t.Fatalf("connection %d closed after %v", i, closed)
			}
			_ = c.Close()
		}
		b := runPort(t, n, "b", nil)
		defer b.stop()
		if c, err := b.Raft().Dial("a@a", time.Second); err != nil || c == nil {
			t.Fatal(err)
		}
	})
}

// certificate returns a certificate of ca and what trusts it; nil makes a new
// authority.
func certificate(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cluster"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: pool}
}

// TestTLS has nodes with certificates of an authority, of two of them, and without.
func TestTLS(t *testing.T) {
	const same, strange, none = 0, 1, 2
	use := func(c *tls.Config) func(*Port) { return func(p *Port) { p.o.TLS = func() *tls.Config { return c } } }
	for _, c := range []struct {
		name         string
		dial, listen int
		ok           bool
	}{
		{"both", same, same, true},
		{"strange dialer", strange, same, false},
		{"strange listener", same, strange, false},
		{"none", none, none, true},
		{"dialer without", none, same, false},
		{"listener without", same, none, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conf := [...]*tls.Config{same: certificate(t), strange: certificate(t), none: nil}
				n := newMemNet()
				a, b := runPort(t, n, "a", use(conf[c.dial])), runPort(t, n, "b", use(conf[c.listen]))
				defer a.stop()
				var wg sync.WaitGroup
				defer wg.Wait()
				defer b.stop()
				echo(&wg, b.Raft().Accept)
				conn, err := a.Raft().Dial("b@b", time.Second)
				if (err == nil) != c.ok {
					t.Fatalf("got %v", err)
				}
				if c.ok {
					says(t, conn, "hello")
				}
			})
		})
	}
}

// wiretap records what is sent over the connections that are dialed through it.
type wiretap struct {
	Network
	mu   sync.Mutex
	seen bytes.Buffer
}

// Dial implements Network.
func (w *wiretap) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := w.Network.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &tapped{Conn: c, tap: w}, nil
}

func (w *wiretap) note(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Write(b)
}

type tapped struct {
	net.Conn
	tap *wiretap
}

func (c *tapped) Write(b []byte) (int, error) {
	c.tap.note(b)
	return c.Conn.Write(b)
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.tap.note(b[:n])
	return n, err
}

// TestConnectionsAreEncrypted: the network shows neither what is said nor who says it.
func TestConnectionsAreEncrypted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		tap := &wiretap{Network: n.host("alpha")}
		a, b := runPort(t, n, "alpha", func(p *Port) { p.o.Network = tap }), runPort(t, n, "bravo", nil)
		b.Belong("the-origin-of-the-cluster")
		defer a.stop()
		var wg sync.WaitGroup
		defer wg.Wait()
		defer b.stop()
		echo(&wg, b.Raft().Accept)
		c, err := a.Raft().Dial("bravo@bravo", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		says(t, c, strings.Repeat("the frog of the pond ", 10_000))
		tap.mu.Lock()
		defer tap.mu.Unlock()
		if tap.seen.Len() < 420_000 {
			t.Errorf("%d bytes were seen", tap.seen.Len())
		}
		for _, secret := range []string{"the frog", "alpha@alpha", "bravo@bravo", "the-origin"} {
			if bytes.Contains(tap.seen.Bytes(), []byte(secret)) {
				t.Errorf("the network shows %q", secret)
			}
		}
	})
}

// TestManInTheMiddle: a relay that ends TLS on both sides and passes the handshake on is neither
// taken for the listener nor for the dialer.
func TestManInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a := runPort(t, n, "a", func(p *Port) { p.o.Resolve = func(string) (string, bool) { return "m:1", true } })
		core, logs := observer.New(zap.WarnLevel)
		b := runPort(t, n, "b", func(p *Port) { p.o.Logger = zap.New(core) })
		defer a.stop()
		defer b.stop()
		b.Raft()
		in, err := n.host("m").Listen(t.Context(), "m:1")
		if err != nil {
			t.Fatal(err)
		}
		own, err := ownTLS()
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			near, err := in.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			far, err := n.host("m").Dial(t.Context(), "b:1")
			if err != nil {
				t.Error(err)
				return
			}
			dialer, listener := tls.Server(near, own), tls.Client(far, own)
			wg.Go(func() {
				_, _ = io.Copy(listener, dialer)
				_ = far.Close()
			})
			_, _ = io.Copy(dialer, listener)
			_ = near.Close()
		})
		if _, err = a.Raft().Dial("b@b", time.Second); !errors.Is(err, errRefused) {
			t.Errorf("the dialer: %v", err)
		}
		wg.Wait()
		_ = in.Close()
		synctest.Wait()
		if list := logs.All(); len(list) != 1 || !strings.Contains(fmt.Sprint(list[0].ContextMap()), errSecret.Error()) {
			t.Errorf("the listener: %v", list)
		}
	})
}

// TestStrangersRest: a stranger that has TLS done and says nothing, or speaks no TLS, has to rest;
// one that only looks whether the port is open has not.
func TestStrangersRest(t *testing.T) {
	finish := func(t *testing.T, raw net.Conn) *tls.Conn {
		t.Helper()
		own, err := ownTLS()
		c := tls.Client(raw, own)
		if err = errors.Join(err, c.HandshakeContext(t.Context())); err != nil {
			t.Error(err)
		}
		return c
	}
	say := func(t *testing.T, c net.Conn, text string) {
		t.Helper()
		if _, err := io.WriteString(c, text); err != nil {
			t.Error(err)
		}
	}
	const often = mostAbandoned + 1
	for _, c := range []struct {
		name   string
		visit  func(t *testing.T, raw net.Conn)
		visits int
		rests  bool
	}{
		{"no word", func(*testing.T, net.Conn) {}, often, false},
		{"another protocol", func(t *testing.T, raw net.Conn) {
			t.Helper()
			say(t, raw, "GET / HTTP/1.1\r\n\r\n")
		}, 1, true},
		{"TLS alone, as a node in a hurry", func(t *testing.T, raw net.Conn) { t.Helper(); finish(t, raw) }, often - 1, false},
		{"TLS alone", func(t *testing.T, raw net.Conn) { t.Helper(); finish(t, raw) }, often, true},
		{"half a frame", func(t *testing.T, raw net.Conn) { t.Helper(); say(t, finish(t, raw), "\x00") }, often, true},
		{"the magic alone", func(t *testing.T, raw net.Conn) { t.Helper(); say(t, finish(t, raw), "\x00\x04"+magic) }, 1, true},
		{"a frame too large", func(t *testing.T, raw net.Conn) { t.Helper(); say(t, finish(t, raw), "\xff\xff") }, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newMemNet()
				a := runPort(t, n, "a", nil)
				defer a.stop()
				for range c.visits {
					raw, err := n.host("x").Dial(t.Context(), "a:1")
					if err != nil {
						t.Fatal(err)
					}
					c.visit(t, raw)
					_ = raw.Close()
					synctest.Wait()
				}
				if rests := (&visit{from: "x:0"}).refused(a.limiter, time.Now()); rests != c.rests {
					t.Errorf("rests: %t", rests)
				}
			})
		})
	}
}

func TestConnectionsEndWithThePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a, b := runPort(t, n, "a", nil), runPort(t, n, "b", nil)
		defer b.stop()
		in := b.Raft()
		c, err := a.Raft().Dial("b@b", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		other, err := in.Accept()
		if err != nil {
			t.Fatal(err)
		}
		a.stop()
		if _, err := other.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("read after the other port has ended: %v", err)
		}
		if _, err := c.Write([]byte("x")); err == nil {
			t.Fatal("wrote after the own port has ended")
		}
	})
}

func FuzzGreeting(f *testing.F) {
	g := greeting{versions: versions{1, 2}, purpose: purposeRaft, verdict: notServed, name: "a@a", wanted: "b@b", origin: "x"}
	f.Add(g.encode())
	f.Add(make([]byte, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := decodeGreeting(b)
		if err != nil {
			return
		}
		again, err := decodeGreeting(g.encode())
		if err != nil || again != g {
			t.Fatalf("%+v became %+v, %v", g, again, err)
		}
	})
}

// No bytes that a stranger sends ever make a connection, and nothing after the frames of the
// handshake is read.
func FuzzAdmit(f *testing.F) {
	f.Add([]byte{0, 1, 'x'})
	f.Add([]byte{0xff, 0xff})
	f.Add(append([]byte{0, 30}, magic+"a seal that does not open"...))
	id := identity{name: "a@a", secret: "a secret", versions: versions{1, 1}, binding: []byte("a connection")}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		if _, err := id.admit(struct {
			io.Reader
			io.Writer
		}{in, io.Discard}, func(purpose) bool { return true }); err == nil {
			t.Fatal("a stranger got in")
		}
		if used := len(b) - in.Len(); used > 2+maxFrame {
			t.Fatalf("%d bytes were read", used)
		}
	})
}
