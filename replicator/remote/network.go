package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// dialTimeout bounds how long a connection is made when a database sets no limit of its own;
// idleTimeout is how long an unused connection is kept.
const (
	dialTimeout = 30 * time.Second
	idleTimeout = 60 * time.Second
	// idlePerHost is how many connections to a host are kept.
	idlePerHost = 100
	// maxHeader is how much the header of an answer has, in bytes. Feeds keep it.
	maxHeader = 64 << 10
)

// NetworkOptions say how other servers are reached.
type NetworkOptions struct {
	TLS TLS
	// Dial makes connections, also those to proxies; nil: package net.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Figures counts requests and connections; nil: they are not counted.
	Figures *Figures
}

// Figures counts the requests to databases of other servers.
type Figures struct {
	Requests, Responses, FailedResponses   atomic.Uint64
	StreamResponses, FailedStreamResponses atomic.Uint64 // of feeds
	ConnectionsMade, ConnectionsUsed       atomic.Uint64
}

// answered counts the outcome of one attempt of a request. An answer that asks to
// come again is a failed one, as no answer is.
func (f *Figures) answered(feed bool, status int, err error) {
	f.Requests.Add(1)
	good, bad := &f.Responses, &f.FailedResponses
	if feed {
		good, bad = &f.StreamResponses, &f.FailedStreamResponses
	}
	if err != nil || status >= http.StatusBadRequest {
		good = bad
	}
	good.Add(1)
}

// Network is the state that the databases of other servers share: connections that are kept for the
// next request, sessions, and how long an overloaded host is left alone. It is safe for concurrent
// use.
type Network struct {
	transport *http.Transport
	figures   *Figures
	zips      sync.Pool    // *zlib.Writer of zipLevel
	busy      atomic.Int64 // entries of mu.hosts
	mu        struct {
		sync.Mutex
		hosts    map[string]*limiter // those that are left alone for a while
		sessions map[sessionKey]*session
	}
}

// NewNetwork returns a network. The error is about files of certificates.
func NewNetwork(o NetworkOptions) (*Network, error) {
	config, err := o.TLS.config()
	if err != nil {
		return nil, fmt.Errorf("TLS of replications: %w", err)
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Figures == nil {
		o.Figures = new(Figures)
	}
	n := &Network{figures: o.Figures, transport: &http.Transport{
		Proxy:               proxyOf,
		DialContext:         o.Figures.counting(o.Dial),
		TLSClientConfig:     config,
		TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: idlePerHost,
		IdleConnTimeout:     idleTimeout,

		MaxResponseHeaderBytes: maxHeader,
	}}
	n.mu.hosts = make(map[string]*limiter)
	n.mu.sessions = make(map[sessionKey]*session)
	return n, nil
}

// counting counts the connections that dial makes, each within dialTimeout.
func (f *Figures) counting(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		conn, err := dial(ctx, network, address)
		if err == nil {
			f.ConnectionsMade.Add(1)
		}
		return conn, err
	}
}

// Close closes the idle connections.
func (n *Network) Close() { n.transport.CloseIdleConnections() }

type proxyKey struct{}

// proxyOf gives the transport the proxy of a request.
func proxyOf(r *http.Request) (*url.URL, error) {
	proxy, _ := r.Context().Value(proxyKey{}).(*url.URL)
	return proxy, nil
}

// limiterOf returns the limiter of a host that is left alone, nil for others.
func (n *Network) limiterOf(host string) *limiter {
	if n.busy.Load() == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.hosts[host]
}

// overloaded notes that a host asked for fewer requests.
func (n *Network) overloaded(host string) {
	n.mu.Lock()
	l := n.mu.hosts[host]
	if l == nil {
		l = new(limiter)
		n.mu.hosts[host] = l
		n.busy.Add(1)
	}
	n.mu.Unlock()
	l.refused(time.Now())
}

// answered notes that a host has taken a request.
func (n *Network) answered(host string) {
	l := n.limiterOf(host)
	if l == nil || !l.taken(time.Now()) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.hosts[host] == l {
		delete(n.mu.hosts, host)
		n.busy.Add(-1)
	}
}
