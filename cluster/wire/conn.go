package wire

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a connection whose other side is proven to be a node of the cluster.
type Conn struct {
	net.Conn
	with     agreed
	received atomic.Int64 // bytes read: who sends anything is alive
	drop     func(*Conn)
	once     sync.Once
	err      error
}

// Node returns the name that the other side has proven.
func (c *Conn) Node() string { return c.with.node }

// Version returns the protocol version that both sides speak.
func (c *Conn) Version() int { return int(c.with.version) }

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.received.Add(int64(n))
	}
	return n, err
}

// Close implements net.Conn. It may be called more than once.
func (c *Conn) Close() error {
	c.once.Do(func() {
		c.drop(c)
		c.err = c.Conn.Close()
	})
	return c.err
}

// backlog is how many connections of one purpose wait to be accepted.
const backlog = 32

// sub is the listener of one purpose.
type sub struct {
	conns chan *Conn
	done  chan struct{}
	once  sync.Once
}

func newSub() *sub { return &sub{conns: make(chan *Conn, backlog), done: make(chan struct{})} }

// Accept returns the next connection, net.ErrClosed once the listener or its
// port is closed.
func (s *sub) Accept() (net.Conn, error) {
	select {
	case <-s.done:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

// Close makes the port refuse connections of this purpose and ends Accept.
// Connections that were accepted live on. It may be called more than once.
func (s *sub) Close() error {
	s.once.Do(func() {
		close(s.done)
		for {
			select {
			case c := <-s.conns:
				_ = c.Close() // no caller has seen it
			default:
				return
			}
		}
	})
	return nil
}

func (s *sub) open() bool {
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// offer hands a connection to Accept, or closes it when no caller takes it in time.
func (s *sub) offer(c *Conn, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case s.conns <- c:
		if s.open() {
			return
		}
	case <-s.done:
	case <-t.C:
	}
	_ = c.Close()
}
