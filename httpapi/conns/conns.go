// Package conns bounds the connections of HTTP clients, so that descriptors are
// left for everything else, and decides which connection goes when there are
// too many: one that has not said yet what it wants, not one that is served.
package conns

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"divan/cluster/network"
)

// Options configure a Limiter.
type Options struct {
	// Most is how many connections are served at the same time; 0: any number.
	Most int
	// Spare is how many more are taken in when all of those are at work. They
	// are for questions about the server itself (Conn.Spare).
	Spare int
	// Share returns how many connections one address may have, or one network of IPv6, as a
	// client with one address there has 2^64 of them; nil or 0: any number. Addresses of this
	// machine are not counted.
	Share func() int
	// Trusted reports whether many clients stand behind an address, which is
	// not counted then; nil: none is.
	Trusted func(netip.Addr) bool
}

// Limiter holds the connections of one server, of all its listeners. It is safe
// for concurrent use.
//
// Invariants:
//
//	L1  open is the number of connections that were admitted and not closed.
//	L2  a connection that a request was read from is never closed here while
//	    the request is being served, except for the body of an unauthenticated client.
//
// LOCKS mu is a leaf: no connection is closed under it.
type Limiter struct {
	o     Options
	start time.Time
	mu    struct {
		sync.Mutex
		open      int
		spares    int // of those
		evicted   uint64
		refused   uint64
		addresses map[netip.Addr]int
		fresh     queue // no request was read yet
		served    queue // the others
		bodies    queue // that send the body of an unauthenticated client
	}
}

// New returns a limiter without connections.
func New(o Options) *Limiter {
	l := &Limiter{o: o, start: time.Now()}
	l.mu.addresses = map[netip.Addr]int{}
	return l
}

// idleBefore is how long a connection has waited for its next request when it
// may be closed in favour of a new one. Most clients send it at once.
const idleBefore = time.Second

// freshBefore is how long the first request of a connection has been waited for when it
// may be closed because it has said nothing. When there is no space the request of most has
// come before the connection was accepted, and only has to be read.
const freshBefore = 20 * time.Millisecond

// unreadBefore is how long a connection has been there when it may be closed although the
// server, which is busy, has not begun to read it.
const unreadBefore = 5 * freshBefore

// Admit takes a connection in, or reports that there is no space. It may close
// another one, and wait for unreadBefore at most until it can.
func (l *Limiter) Admit(inner net.Conn) (c *Conn, ok bool) {
	c = &Conn{Conn: inner, limiter: l, address: addressOf(inner)}
	c.network = network.Of(c.address)
	for {
		victim, wait, ok := l.enter(c)
		victim.cut() // its client gets no answer
		if wait <= 0 {
			return c, ok
		}
		<-time.After(wait)
	}
}

// now returns the time since the start of the limiter, never 0.
func (l *Limiter) now() time.Duration { return max(1, time.Since(l.start)) }

// enter finds a place for a connection, and whom it takes it from, or says when
// to ask again.
func (l *Limiter) enter(c *Conn) (victim *Conn, wait time.Duration, ok bool) {
	counted := c.address.IsValid() && !c.address.IsLoopback() && (l.o.Trusted == nil || !l.o.Trusted(c.address))
	share := 0
	if counted && l.o.Share != nil {
		share = l.o.Share()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case share > 0 && l.mu.addresses[c.network] >= share:
		if victim = l.victimLocked(func(o *Conn) bool { return o.network == c.network }); victim == nil {
			l.mu.refused++
			return nil, 0, false
		}
	case l.o.Most <= 0 || l.mu.open-l.mu.spares < l.o.Most:
	default:
		if victim = l.victimLocked(func(o *Conn) bool { return !o.spare }); victim != nil {
			break
		}
		if wait = l.freshLocked(); wait > 0 {
			return nil, wait, false
		}
		if l.mu.spares < l.o.Spare {
			break
		}
		if victim = l.victimLocked(func(o *Conn) bool { return o.spare }); victim == nil {
			l.mu.refused++
			return nil, 0, false
		}
	}
	if victim != nil {
		l.forgetLocked(victim)
		l.mu.evicted++
	}
	if c.spare = l.o.Most > 0 && l.mu.open-l.mu.spares >= l.o.Most; c.spare {
		l.mu.spares++
	}
	l.mu.open++
	if counted {
		c.counted = true
		l.mu.addresses[c.network]++
	}
	c.admitted = l.now()
	c.since.Store(unread)
	l.mu.fresh.push(c, &c.place)
	return victim, 0, true
}

// freshLocked returns when to look again whether the oldest connection that has said
// nothing had its time, 0 when there is none.
func (l *Limiter) freshLocked() time.Duration {
	c := l.mu.fresh.first(func(c *Conn) bool { return !c.spare })
	if c == nil {
		return 0
	}
	return min(max(time.Millisecond, c.timeLeft(l.now())), freshBefore)
}

// victimLocked returns the connection that is missed least, nil when all are at work: the
// one that was silent for the longest time, then one that sends the body of an
// unauthenticated client, then one that waits for its next request.
func (l *Limiter) victimLocked(ok func(*Conn) bool) *Conn {
	now := l.now()
	if c := l.mu.fresh.first(func(c *Conn) bool { return c.timeLeft(now) <= 0 && ok(c) }); c != nil {
		return c
	}
	if c := l.mu.bodies.find(ok); c != nil {
		return c
	}
	return l.mu.served.find(func(c *Conn) bool {
		since := time.Duration(c.since.Load())
		return since != 0 && now-since >= idleBefore && ok(c)
	})
}

// forgetLocked takes a connection out of everything.
func (l *Limiter) forgetLocked(c *Conn) {
	if c.gone {
		return
	}
	c.gone = true
	l.mu.open--
	if c.spare {
		l.mu.spares--
	}
	c.place.leave()
	c.body.leave()
	if !c.counted {
		return
	}
	if l.mu.addresses[c.network]--; l.mu.addresses[c.network] == 0 {
		delete(l.mu.addresses, c.network)
	}
}

// EvictBody closes the connection that has been sending the body of an unauthenticated
// client for the longest time, to make space for another request; false: there is none.
func (l *Limiter) EvictBody() bool {
	l.mu.Lock()
	victim := l.mu.bodies.find(func(*Conn) bool { return true })
	if victim != nil {
		l.forgetLocked(victim)
		l.mu.evicted++
	}
	l.mu.Unlock()
	victim.cut() // its client gets no answer
	return victim != nil
}

// Stats are figures about the connections.
type Stats struct {
	Open             int
	Evicted, Refused uint64 // since the start
}

// Stats returns the figures of the moment.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Open: l.mu.open, Evicted: l.mu.evicted, Refused: l.mu.refused}
}

// addressOf returns the address at the other end, the zero one when it has none.
func addressOf(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		address, _ := netip.AddrFromSlice(a.IP)
		return address.Unmap()
	}
	return netip.Addr{}
}

// contextKey is where a connection is found in the context of its requests.
type contextKey struct{}

// NewContext returns a context for the requests of a connection.
func NewContext(ctx context.Context, c *Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From returns the connection of a request, nil when it came another way. All
// methods but those of net.Conn do nothing then.
func From(ctx context.Context) *Conn {
	c, _ := ctx.Value(contextKey{}).(*Conn)
	return c
}

// Listen returns a listener whose connections are admitted by a limiter of their
// own. Those that find no space are closed.
func Listen(inner net.Listener, o Options) net.Listener { return &listener{inner, New(o)} }

type listener struct {
	net.Listener
	limiter *Limiter
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c, ok := l.limiter.Admit(inner); ok {
			return c, nil
		}
		_ = inner.Close() // it was refused
	}
}
