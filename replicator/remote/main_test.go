package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"divan/cluster/wire/simnet"
	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/doc"
	"divan/storage/pause"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	serverIP = "10.0.0.1"
	clientIP = "10.0.0.2"
	peerURL  = "http://" + serverIP + ":5984/db/"
)

// peer is a server that behaves as a test wants it to, on a network in virtual
// time.
type peer struct {
	t      *testing.T
	net    *simnet.Network
	server *simnet.Host
	client *simnet.Host
	http   *http.Server
	mu     struct {
		sync.Mutex
		seen []string // requests: method and URI
	}
	// wrap, when set, gets each connection that the client makes.
	wrap func(net.Conn) net.Conn
}

// with runs a test against a peer.
func with(t *testing.T, handler http.HandlerFunc, test func(*testing.T, *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Handlers that wait have an end: a server does not hear that a client has
		// gone while it has not read the body.
		t.Cleanup(func() { _ = pause.For(context.Background(), 2*time.Hour) })
		p := &peer{t: t, net: simnet.New(1)}
		p.server, p.client = p.boot(serverIP), p.boot(clientIP)
		p.serve(p.server, "0.0.0.0:5984", func(w http.ResponseWriter, r *http.Request) {
			p.mu.Lock()
			p.mu.seen = append(p.mu.seen, r.Method+" "+r.URL.RequestURI())
			p.mu.Unlock()
			handler(w, r)
		})
		test(t, p)
	})
}

func (p *peer) boot(ip string) *simnet.Host {
	p.t.Helper()
	h, err := p.net.Boot(ip)
	if err != nil {
		p.t.Fatal(err)
	}
	return h
}

// serve runs a server until the end of the test.
func (p *peer) serve(h *simnet.Host, address string, handler http.HandlerFunc) {
	p.t.Helper()
	l, err := h.Listen(p.t.Context(), address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.http = &http.Server{Handler: handler, ReadHeaderTimeout: time.Hour}
	done := make(chan struct{})
	server := p.http
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	p.t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

// requests returns what was asked so far, without what is told of it.
func (p *peer) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.mu.seen
	p.mu.seen = nil
	return seen
}

func (p *peer) network(t TLS) *Network {
	p.t.Helper()
	n, err := NewNetwork(NetworkOptions{TLS: t, Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
		c, err := p.client.Dial(ctx, address)
		if err == nil && p.wrap != nil {
			c = p.wrap(c)
		}
		return c, err
	}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(n.Close)
	return n
}

// open opens the peer's database; the URL is that of the peer where a has none.
func (p *peer) open(a spec.Address) *Database {
	p.t.Helper()
	if a.URL == "" {
		a.URL = peerURL
	}
	d, err := New(Options{
		Network: p.network(TLS{}), Address: a, UserAgent: "test",
		Options: spec.Options{Connections: 1, ConnectionTimeout: 30 * time.Second, Retries: 5},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = d.Close() })
	return d
}

// answer answers a text.
func answerWith(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// rev returns a revision with an id of that digit.
func rev(pos uint64, digit string) doc.Rev {
	r, err := doc.ParseRev(fmt.Sprintf("%d-%s", pos, strings.Repeat(digit, 32)))
	if err != nil {
		panic(err)
	}
	return r
}

// drain reads a feed to its end: ids, positions and revisions.
func drain(ctx context.Context, f endpoint.Feed) (string, error) {
	var b strings.Builder
	rows := make([]endpoint.Change, 3)
	for {
		n, err := f.Next(ctx, rows)
		for _, c := range rows[:n] {
			fmt.Fprintf(&b, "%s@%s%v ", c.ID, c.Seq, c.Revs)
		}
		if errors.Is(err, io.EOF) {
			return strings.TrimSpace(b.String()), nil
		}
		if err != nil {
			return b.String(), err
		}
	}
}

// fetchAll returns what Fetch gives: each document as the JSON that would be
// written, and the contents behind it.
func fetchAll(ctx context.Context, d *Database, o endpoint.FetchOptions, wanted ...endpoint.Wanted) ([]string, error) {
	var out []string
	err := d.Fetch(ctx, o, wanted, func(one *endpoint.Doc, c endpoint.Contents) error {
		text, err := appendDoc(nil, one, func(dst []byte, a *endpoint.Attachment) ([]byte, error) {
			if a.Stub {
				return appendStub(dst, a), nil
			}
			return appendFollows(dst, &a.Attachment, false), nil
		})
		if err != nil {
			return err
		}
		for i := range one.Atts {
			if !one.Atts[i].Follows() {
				if !one.Atts[i].Stub {
					text = append(text, fmt.Sprintf(" %s=%q", one.Atts[i].Name, one.Atts[i].Data)...)
				}
				continue
			}
			r, err := c.Next(ctx)
			if err != nil {
				return err
			}
			content, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err != nil {
				return err
			}
			text = append(text, fmt.Sprintf(" %s=%q", one.Atts[i].Name, content)...)
		}
		out = append(out, string(text))
		return nil
	})
	return out, err
}
