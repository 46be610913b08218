package conns

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// Conn is an admitted connection. A client that takes nothing of an answer for
// readerPatience is cut off, and so is one that takes it more slowly than Expect says.
type Conn struct {
	net.Conn
	limiter *Limiter
	address netip.Addr
	network netip.Addr // what counts as its address
	spare   bool
	begun   bool // a request was read; the goroutine of the connection alone looks at it
	awaited bool // BeginWait was called; one goroutine at a time reads
	// since is when the connection began to wait for a request, in nanoseconds
	// after the start of the limiter; 0: one is being served, unread: the server has not
	// begun to read.
	since    atomic.Int64
	admitted time.Duration // after the start of the limiter
	bound    time.Time     // when the deadline of writes was set
	pace     pace          // of the client, as a reader
	rate     int64         // bytes per second that it has to take at least

	// Guarded by limiter.mu.
	gone, counted bool
	place, body   element
}

// unread stands in Conn.since.
const unread = -1

// BeginWait tells that the server begins to wait for the first request, or for the
// handshake before it. The first Read does so too. Until then the client may have said
// everything: a busy server has not looked.
func (c *Conn) BeginWait() {
	if !c.awaited {
		c.awaited = true
		c.since.Store(int64(c.limiter.now()))
	}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	c.BeginWait()
	return c.Conn.Read(p)
}

// timeLeft returns for how much longer the client of a connection that no request was
// served of has time to say something; 0 and less: it had enough.
func (c *Conn) timeLeft(now time.Duration) time.Duration {
	switch since := c.since.Load(); since {
	case 0: // its first request is about to be served
		return freshBefore
	case unread:
		return c.admitted + unreadBefore - now
	default:
		return time.Duration(since) + freshBefore - now
	}
}

// Begin tells that a request is being served.
func (c *Conn) Begin() {
	if c == nil {
		return
	}
	c.since.Store(0)
	c.pace = pace{} // of the answer before, which had another rate
	if c.begun {
		return
	}
	c.begun = true
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.gone {
		c.place.leave()
		l.mu.served.push(c, &c.place)
	}
}

// End tells that a request was answered.
func (c *Conn) End() {
	if c == nil {
		return
	}
	c.since.Store(int64(c.limiter.now()))
}

// Spare reports whether the connection is one beyond those that are served: the
// server says how it is, and does nothing else for it.
func (c *Conn) Spare() bool { return c != nil && c.spare }

// AwaitBody tells that the body of an unauthenticated client is being read; the returned
// function tells the end of it.
func (c *Conn) AwaitBody() (arrived func()) {
	if c == nil {
		return func() {}
	}
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.gone {
		l.mu.bodies.push(c, &c.body)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.body.leave()
	}
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.limiter.mu.Lock()
	c.limiter.forgetLocked(c)
	c.limiter.mu.Unlock()
	return c.Conn.Close()
}

// cut ends the connection below TLS, which would send a last word and wait for a
// client that takes nothing.
func (c *Conn) cut() {
	if c == nil {
		return
	}
	inner := c.Conn
	if secret, ok := inner.(interface{ NetConn() net.Conn }); ok {
		inner = secret.NetConn()
	}
	_ = inner.Close() // its goroutine finds out
}

// CutOff ends the connection at once, on another goroutine than the one that serves it.
func (c *Conn) CutOff() { c.cut() }

// CloseWrite tells the client that nothing more comes. net/http calls it when
// the client may still be sending, so that it gets to read why it was refused.
func (c *Conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// readerPatience is how long a client may take nothing of its answer, and
// writePiece how many bytes it has to take meanwhile. Its window and the buffer of
// the socket come on top. The deadline moves when it is renewAfter old: setting
// it costs more than looking at a clock.
const (
	readerPatience = time.Minute
	writePiece     = 64 << 10
	renewAfter     = 5 * time.Second
)

// Expect sets how many bytes per second the client has to take while the server waits
// for it; 0: any number. The goroutine that writes calls it.
func (c *Conn) Expect(rate int64) {
	if c != nil {
		c.rate = rate
	}
}

// SetWriteDeadline implements net.Conn, but for lifting the deadline: net/http does that
// after each answer, and the next one would have none for as long as Write believes that
// the one it has set is there.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}

// Write implements net.Conn. One goroutine at a time writes.
func (c *Conn) Write(p []byte) (n int, err error) {
	for {
		now := time.Now()
		if now.Sub(c.bound) > renewAfter {
			c.bound = now
			if err := c.Conn.SetWriteDeadline(now.Add(readerPatience)); err != nil {
				return n, err
			}
		}
		written, err := c.Conn.Write(p[n:min(len(p), n+writePiece)])
		n += written
		if err == nil && c.pace.tooSlow(written, time.Since(now), c.rate) {
			c.cut()
			return n, ErrTrickle
		}
		if err != nil || n == len(p) {
			return n, err
		}
	}
}
