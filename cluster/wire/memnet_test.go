package wire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// memNet is a network in memory whose links can be cut: what is written then
// is held back until the link is healed, as TCP would.
type memNet struct {
	mu        sync.Mutex
	changed   *sync.Cond
	listeners map[string]*memListener
	cut       map[[2]string]bool
}

func newMemNet() *memNet {
	n := &memNet{listeners: map[string]*memListener{}, cut: map[[2]string]bool{}}
	n.changed = sync.NewCond(&n.mu)
	return n
}

// host is the network as one host sees it.
type memHost struct {
	net  *memNet
	name string
}

func (n *memNet) host(name string) memHost { return memHost{n, name} }

// sever cuts or heals the link between two hosts, both ways.
func (n *memNet) sever(a, b string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{a, b}], n.cut[[2]string{b, a}] = cut, cut
	n.changed.Broadcast()
}

type memListener struct {
	net     *memNet
	address string
	waiting []net.Conn
	closed  bool
}

type memAddr string

func (memAddr) Network() string  { return "mem" }
func (a memAddr) String() string { return string(a) }

func (h memHost) Listen(_ context.Context, address string) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.net.listeners[address] != nil {
		return nil, errors.New("address in use")
	}
	l := &memListener{net: h.net, address: address}
	h.net.listeners[address] = l
	return l, nil
}

func (h memHost) ListenPacket(context.Context, string) (net.PacketConn, error) {
	return nil, errors.ErrUnsupported
}

func (h memHost) Dial(ctx context.Context, address string) (net.Conn, error) {
	n := h.net
	defer context.AfterFunc(ctx, func() {
		n.mu.Lock()
		n.changed.Broadcast()
		n.mu.Unlock()
	})()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.cut[[2]string{h.name, host}] && ctx.Err() == nil {
		n.changed.Wait()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	l := n.listeners[address]
	if l == nil {
		return nil, errors.New("connection refused")
	}
	there, back := &memPipe{net: n, from: h.name, to: host}, &memPipe{net: n, from: host, to: h.name}
	l.waiting = append(l.waiting, &memConn{in: there, out: back, local: memAddr(address), remote: memAddr(h.name + ":0")})
	n.changed.Broadcast()
	return &memConn{in: back, out: there, local: memAddr(h.name + ":0"), remote: memAddr(address)}, nil
}

func (l *memListener) Accept() (net.Conn, error) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	for len(l.waiting) == 0 && !l.closed {
		l.net.changed.Wait()
	}
	if l.closed {
		return nil, net.ErrClosed
	}
	c := l.waiting[0]
	l.waiting = l.waiting[1:]
	return c, nil
}

func (l *memListener) Close() error {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if !l.closed {
		l.closed = true
		delete(l.net.listeners, l.address)
		for _, c := range l.waiting {
			m := c.(*memConn)
			m.in.gone, m.out.shut = true, true
		}
	}
	l.net.changed.Broadcast()
	return nil
}

func (l *memListener) Addr() net.Addr { return memAddr(l.address) }

// memPipe is one direction of a connection.
type memPipe struct {
	net      *memNet
	from, to string
	buf      []byte
	shut     bool // by the writer
	gone     bool // the reader has closed
}

const memBuffer = 256 << 10

type memConn struct {
	in, out       *memPipe
	local, remote net.Addr
}

func (c *memConn) Read(b []byte) (int, error) {
	p := c.in
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	for !p.gone && (p.net.cut[[2]string{p.from, p.to}] || len(p.buf) == 0 && !p.shut) {
		p.net.changed.Wait()
	}
	if p.gone {
		return 0, net.ErrClosed
	}
	if len(p.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.buf)
	p.buf = p.buf[n:]
	p.net.changed.Broadcast()
	return n, nil
}

func (c *memConn) Write(b []byte) (int, error) {
	p := c.out
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	for n := 0; n < len(b); {
		for len(p.buf) >= memBuffer && !p.shut && !p.gone {
			p.net.changed.Wait()
		}
		if p.shut || p.gone && !p.net.cut[[2]string{p.to, p.from}] {
			return n, io.ErrClosedPipe
		}
		k := min(len(b)-n, memBuffer-len(p.buf))
		if p.gone {
			k = len(b) - n // lost
		} else {
			p.buf = append(p.buf, b[n:n+k]...)
		}
		n += k
		p.net.changed.Broadcast()
	}
	return len(b), nil
}

func (c *memConn) Close() error {
	c.in.net.mu.Lock()
	defer c.in.net.mu.Unlock()
	c.in.gone, c.out.shut = true, true
	c.in.net.changed.Broadcast()
	return nil
}

func (c *memConn) LocalAddr() net.Addr              { return c.local }
func (c *memConn) RemoteAddr() net.Addr             { return c.remote }
func (c *memConn) SetDeadline(time.Time) error      { return nil }
func (c *memConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memConn) SetWriteDeadline(time.Time) error { return nil }
