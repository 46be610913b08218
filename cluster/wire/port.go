package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// Limits of a port.
const (
	handshakeTime  = 5 * time.Second // an unfinished handshake is closed after that
	acceptPauseMax = time.Second     // between attempts while the system refuses to accept
)

// PortOptions configures a Port. Self, Network, Address, Secret and Resolve are required.
type PortOptions struct {
	Self    string                                      // name of this node
	Network Network                                     // where it listens and dials
	Address string                                      // host:port to listen on
	Secret  func() string                               // the cluster's secret now; empty: every connection is refused
	TLS     func() *tls.Config                          // certificates of an authority, which both sides have to show; nil or a nil result: none
	Resolve func(node string) (address string, ok bool) // host:port of another node's port
	Foreign func(node string)                           // told once of each node that was refused as part of another cluster; may be nil
	Logger  *zap.Logger                                 // default: none
	// NodeDownAfter is how long another node that is asked for something may be silent
	// before it counts as down; 0: a second.
	NodeDownAfter time.Duration
}

// Port is the one TCP port on which a node talks to others. Each connection
// serves one purpose (calls, Raft, gossip), and nothing of it is looked at
// before both sides have proven that they know the cluster's secret.
//
// Locks: mu guards what is inside; nothing is waited for while it is held.
type Port struct {
	o         PortOptions
	versions  versions
	listening chan struct{}
	limiter   *handshakeLimiter
	ownTLS    *tls.Config // where no certificates are given

	mu struct {
		sync.Mutex
		running *life // nil while Run does not
		addr    net.Addr
		subs    map[purpose]*sub
		conns   map[*Conn]struct{}
		origin  string                // of the cluster that this node is part of; empty: it knows of none
		member  bool                  // Belong was called
		foreign map[foreignError]bool // nodes of other clusters that were refused
		closed  bool
	}
}

// NewPort returns a port that does not listen yet. It fails for a name that
// does not fit into the handshake.
func NewPort(o PortOptions) (*Port, error) {
	if o.Self == "" || len(o.Self) > maxName {
		return nil, fmt.Errorf("the name of a node has 1 to %d bytes", maxName)
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.NodeDownAfter <= 0 {
		o.NodeDownAfter = (silentTurns + 1) * pingEvery
	}
	own, err := ownTLS()
	if err != nil {
		return nil, err
	}
	p := &Port{
		o: o, versions: versions{versionMin, versionMax}, listening: make(chan struct{}),
		limiter: newHandshakeLimiter(), ownTLS: own,
	}
	p.mu.subs = map[purpose]*sub{}
	p.mu.conns = map[*Conn]struct{}{}
	p.mu.foreign = map[foreignError]bool{}
	return p, nil
}

// Run listens and accepts until ctx ends. Then every connection, dialed or
// accepted, is closed, and Accept of all listeners ends. It runs once. The
// error is why the address cannot be listened on, nil after ctx has ended.
func (p *Port) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer p.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ln, err := p.o.Network.Listen(ctx, p.o.Address)
	if err != nil {
		return fmt.Errorf("listen on the cluster port: %w", err)
	}
	defer func() { _ = ln.Close() }()
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	p.mu.Lock()
	p.mu.running, p.mu.addr = &life{ctx}, ln.Addr()
	p.mu.Unlock()
	close(p.listening)
	pause := time.Duration(0)
	for {
		c, err := ln.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = c.Close()
			}
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept on the cluster port: %w", err)
		}
		if err != nil {
			pause = min(max(2*pause, 10*time.Millisecond), acceptPauseMax)
			p.o.Logger.Warn("cannot accept on the cluster port", zap.Error(err), zap.Duration("pause", pause))
			rest(ctx, pause)
			continue
		}
		pause = 0
		if done, ok := p.limiter.enter(c, time.Now()); ok {
			wg.Go(func() { p.take(ctx, c, done) })
		}
	}
}

// rest waits for d or the end of ctx.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// close ends everything that the port has given out.
func (p *Port) close() {
	p.mu.Lock()
	p.mu.closed, p.mu.running = true, nil
	subs, conns := p.mu.subs, p.mu.conns
	p.mu.subs, p.mu.conns = map[purpose]*sub{}, map[*Conn]struct{}{}
	p.mu.Unlock()
	for _, s := range subs {
		_ = s.Close()
	}
	for c := range conns {
		_ = c.Close()
	}
}

// Listening is closed once Addr is known.
func (p *Port) Listening() <-chan struct{} { return p.listening }

// Addr returns where the port listens, nil before Listening is closed.
func (p *Port) Addr() net.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.addr
}

// take does the handshake with who has connected and hands the connection on.
func (p *Port) take(ctx context.Context, raw net.Conn, done func()) {
	defer done()
	c, err := p.shake(ctx, raw, func(ctx context.Context) (net.Conn, agreed, error) { return p.answer(ctx, raw) })
	if err != nil {
		_ = raw.Close()
		if ctx.Err() == nil {
			p.refused(raw.RemoteAddr(), err)
		}
		return
	}
	p.limiter.proven(raw.RemoteAddr())
	done() // from here on it is no unfinished one
	s := p.sub(c.with.purpose)
	if s == nil {
		_ = c.Close()
		return
	}
	s.offer(c, handshakeTime)
}

// refused notes a connection whose handshake has failed.
func (p *Port) refused(from net.Addr, err error) {
	log := p.o.Logger.Debug
	if p.limiter.failed(from, err, time.Now()) {
		log = p.o.Logger.Warn
	}
	log("refused a connection", zap.Stringer("from", from), zap.Error(err))
	p.tellForeign(err)
}

// shake bounds a handshake in time and makes its outcome a connection.
func (p *Port) shake(ctx context.Context, raw net.Conn, do func(context.Context) (net.Conn, agreed, error)) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	inner, with, err := do(ctx)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			err = ended
			if errors.Is(ended, context.DeadlineExceeded) {
				err = fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, ended)
			}
		}
		return nil, fmt.Errorf("handshake: %w", err)
	}
	return p.adopt(inner, with)
}

// adopt notes a connection, so that it ends with the port.
func (p *Port) adopt(inner net.Conn, with agreed) (*Conn, error) {
	c := &Conn{Conn: inner, with: with, drop: p.forget}
	p.mu.Lock()
	closed := p.mu.closed || with.stale(p.mu.origin) // which became known meanwhile
	if !closed {
		p.mu.conns[c] = struct{}{}
	}
	p.mu.Unlock()
	if closed {
		return nil, errors.Join(net.ErrClosed, inner.Close())
	}
	return c, nil
}

func (p *Port) forget(c *Conn) {
	p.mu.Lock()
	delete(p.mu.conns, c)
	p.mu.Unlock()
}

// answer is the listener's part of a handshake, TLS included.
func (p *Port) answer(ctx context.Context, raw net.Conn) (net.Conn, agreed, error) {
	c, binding, err := secure(ctx, tls.Server(raw, p.tls(listenerTLS)))
	if err != nil {
		return nil, agreed{}, err
	}
	with, err := p.identity(binding).admit(c, func(u purpose) bool { return p.sub(u) != nil && (u != purposeRaft || p.belongs()) })
	return c, with, err
}

func (p *Port) identity(binding []byte) identity {
	secret := p.o.Secret()
	p.mu.Lock()
	defer p.mu.Unlock()
	return identity{name: p.o.Self, origin: p.mu.origin, secret: secret, versions: p.versions, binding: binding}
}

// tls returns the configuration of a new connection; side completes one that was given.
func (p *Port) tls(side func(*tls.Config) *tls.Config) *tls.Config {
	if p.o.TLS != nil {
		if given := p.o.TLS(); given != nil {
			return side(given)
		}
	}
	return p.ownTLS
}

// dial connects to an address for a purpose. node is the node that has to be there, empty when any
// node of the cluster will do. It ends with ctx, with Run, and after handshakeTime.
func (p *Port) dial(ctx context.Context, u purpose, node, address string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	running := p.life()
	if running == nil {
		return nil, fault.New(fault.Closed, "the cluster port is not open")
	}
	defer running.then(cancel)()
	raw, err := p.o.Network.Dial(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	c, err := p.shake(ctx, raw, func(ctx context.Context) (net.Conn, agreed, error) {
		c, binding, err := secure(ctx, tls.Client(raw, p.tls(dialerTLS)))
		if err != nil {
			return nil, agreed{}, err
		}
		with, err := p.identity(binding).greet(c, u, node)
		return c, with, err
	})
	if err != nil {
		_ = raw.Close()
		p.tellForeign(err)
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	p.limiter.proven(raw.RemoteAddr())
	return c, nil
}

// dialNode is dial by name. The error is always fault.NodeDown.
func (p *Port) dialNode(ctx context.Context, u purpose, node string) (*Conn, error) {
	address, ok := p.o.Resolve(node)
	if !ok {
		return nil, fault.Newf(fault.NodeDown, "Node %s is not known here.", node)
	}
	c, err := p.dial(ctx, u, node, address)
	if err != nil {
		return nil, fault.Wrap(fault.NodeDown, fmt.Sprintf("Node %s cannot be reached.", node), err)
	}
	return c, nil
}

// life is the time during which something runs.
type life struct{ ctx context.Context }

// then makes f run when it is over; stop takes that back.
func (l *life) then(f func()) (stop func() bool) { return context.AfterFunc(l.ctx, f) }

// life returns that of Run, nil while it does not run.
func (p *Port) life() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.running
}

// listen makes the port accept connections of a purpose. A later call for the
// same one takes over and closes what the earlier returned.
func (p *Port) listen(u purpose) *sub {
	s := newSub()
	p.mu.Lock()
	before, closed := p.mu.subs[u], p.mu.closed
	if !closed {
		p.mu.subs[u] = s
	}
	p.mu.Unlock()
	if closed {
		_ = s.Close()
	}
	if before != nil {
		_ = before.Close()
	}
	return s
}

// sub returns the open listener of a purpose, nil when there is none.
func (p *Port) sub(u purpose) *sub {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.mu.subs[u]; s != nil && s.open() {
		return s
	}
	return nil
}
