package simnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

const (
	firstPort      = 40000             // of ports that are not asked for by number
	backlog        = 256               // connections that have not been accepted yet
	connectTimeout = 127 * time.Second // after which a dialer without a deadline gives up
)

// Host is one host from its start to its end. It implements wire.Network.
type Host struct {
	network *Network
	addr    netip.Addr

	// guarded by Network.mu
	down      bool
	silent    bool // down, and no other host has heard of it
	nextPort  uint16
	listeners map[uint16]*listener
	sockets   map[uint16]*socket
}

// IP returns the host's address.
func (h *Host) IP() string { return h.addr.String() }

// Kill ends the host as the end of its processes would: its connections are
// reset and it refuses new ones. What runs on it can send and receive nothing
// any more.
func (h *Host) Kill() { h.end(false) }

// PowerOff ends the host without a word: its connections just stop, and
// connecting to it takes for ever. Who talked to it learns that it was gone
// when it is booted again.
func (h *Host) PowerOff() { h.end(true) }

func (h *Host) end(silent bool) {
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.down {
		return
	}
	h.down, h.silent = true, silent
	for _, l := range h.listeners {
		l.closeLocked()
	}
	for _, s := range h.sockets {
		s.closeLocked()
	}
	for p := range n.mu.pipes {
		for _, s := range []*stream{p.writer, p.reader} {
			if s.host == h {
				s.dead = true
				p.wake()
			}
		}
	}
	if !silent {
		h.resetLocked(n)
	}
	n.wakeLocked()
}

// resetLocked lets those that talk to the host hear that it is gone.
func (h *Host) resetLocked(n *Network) {
	h.silent = false
	now := time.Now()
	for p := range n.mu.pipes {
		if p.writer.host == h && !p.ended {
			p.reset(now.Add(n.delayLocked(p.route)))
			p.writer.closeLocked(n)
		}
	}
	for p := range n.mu.pipes {
		if p.reader.host == h {
			p.reader.closeLocked(n)
		}
	}
}

// parse returns the address and port of host:port; a host that stands for the
// own one is the own one.
func (h *Host) parse(address string) (addr netip.Addr, port uint16, loopback bool, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return netip.Addr{}, 0, false, err
	}
	p, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return netip.Addr{}, 0, false, err
	}
	if host == "" {
		return h.addr, uint16(p), false, nil
	}
	if host == "localhost" {
		return h.addr, uint16(p), true, nil
	}
	addr, err = netip.ParseAddr(host)
	switch {
	case err != nil:
		return netip.Addr{}, 0, false, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	case addr.IsLoopback():
		return h.addr, uint16(p), true, nil
	case addr.IsUnspecified():
		return h.addr, uint16(p), false, nil
	}
	return addr, uint16(p), false, nil
}

func failed(op, network string, err error) error {
	return &net.OpError{Op: op, Net: network, Err: err}
}

func refusal(op string, errno syscall.Errno) error {
	return failed(op, "tcp", os.NewSyscallError(op, errno))
}

var errDown = errors.New("this host is down")

// takeLocked finds a port.
func (h *Host) takeLocked(op, address string, used func(uint16) bool) (port uint16, loopback bool, err error) {
	addr, port, loopback, err := h.parse(address)
	switch {
	case err != nil:
		return 0, false, failed(op, "ip", err)
	case h.down:
		return 0, false, failed(op, "ip", errDown)
	case addr != h.addr:
		return 0, false, failed(op, "ip", os.NewSyscallError("bind", syscall.EADDRNOTAVAIL))
	case port != 0 && used(port):
		return 0, false, failed(op, "ip", os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	for port == 0 {
		if h.nextPort < firstPort {
			h.nextPort = firstPort
		}
		if !used(h.nextPort) {
			port = h.nextPort
		}
		h.nextPort++
	}
	return port, loopback, nil
}

// Listen implements wire.Network. Port 0 is a free one.
func (h *Host) Listen(ctx context.Context, address string) (net.Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("listen", "tcp", err)
	}
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	port, loopback, err := h.takeLocked("listen", address, func(p uint16) bool { return h.listeners[p] != nil })
	if err != nil {
		return nil, err
	}
	l := &listener{host: h, port: port, loopback: loopback, backlog: make(chan *stream, backlog), ended: make(chan struct{})}
	h.listeners[port] = l
	return l, nil
}

// ListenPacket implements wire.Network. Port 0 is a free one.
func (h *Host) ListenPacket(ctx context.Context, address string) (net.PacketConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("listen", "udp", err)
	}
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	port, _, err := h.takeLocked("listen", address, func(p uint16) bool { return h.sockets[p] != nil })
	if err != nil {
		return nil, err
	}
	s := &socket{host: h, port: port, changed: make(chan struct{})}
	h.sockets[port] = s
	return s, nil
}

// Dial implements wire.Network. It hangs while the way there or back is cut or the other host was
// powered off, and is refused when there is no listener.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	addr, port, loopback, err := h.parse(address)
	if err != nil {
		return nil, failed("dial", "tcp", err)
	}
	r := route{h.addr, addr}
	giveUp := time.NewTimer(connectTimeout)
	defer giveUp.Stop()
	for {
		wait, changed, err := h.reach(r)
		if err != nil {
			return nil, err
		}
		var arrives <-chan time.Time
		if wait >= 0 {
			if wait == 0 {
				return h.connect(r, port, loopback)
			}
			timer := time.NewTimer(wait)
			defer timer.Stop()
			arrives, changed = timer.C, nil
		}
		select {
		case <-ctx.Done():
			return nil, failed("dial", "tcp", ctx.Err())
		case <-giveUp.C:
			return nil, refusal("connect", syscall.ETIMEDOUT)
		case <-changed:
		case <-arrives:
			if h.open(r) {
				return h.connect(r, port, loopback)
			}
		}
	}
}

// reach returns how long the handshake takes, -1 for now for ever; changed is
// closed when it is worth asking again.
func (h *Host) reach(r route) (wait time.Duration, changed <-chan struct{}, err error) {
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.down {
		return 0, nil, failed("dial", "tcp", errDown)
	}
	if !n.openLocked(r) {
		return -1, n.mu.changed, nil
	}
	wait = n.delayLocked(r) + n.delayLocked(r.back())
	if n.lostLocked(r) || n.lostLocked(r.back()) {
		wait += time.Second // after which TCP asks again
	}
	return wait, nil, nil
}

func (h *Host) open(r route) bool {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	return h.network.openLocked(r)
}

// openLocked reports whether hosts can shake hands.
func (n *Network) openLocked(r route) bool {
	there := n.mu.hosts[r.to]
	return there != nil && !there.silent && !n.linkLocked(r).Cut && !n.linkLocked(r.back()).Cut
}

// connect makes a connection after the handshake.
func (h *Host) connect(r route, port uint16, loopback bool) (net.Conn, error) {
	n := h.network
	n.mu.Lock()
	defer n.mu.Unlock()
	there := n.mu.hosts[r.to]
	if h.down {
		return nil, failed("dial", "tcp", errDown)
	}
	l := there.listeners[port]
	if l == nil || l.loopback && !loopback && there != h {
		return nil, refusal("connect", syscall.ECONNREFUSED)
	}
	h.nextPort = max(h.nextPort+1, firstPort) // it may have wrapped around
	near, far := n.streamsLocked(netip.AddrPortFrom(h.addr, h.nextPort), netip.AddrPortFrom(r.to, port))
	near.host, far.host = h, there
	select {
	case l.backlog <- far:
		return near, nil
	default:
		near.closeLocked(n)
		far.closeLocked(n)
		return nil, refusal("connect", syscall.ECONNREFUSED)
	}
}

// listener implements net.Listener.
type listener struct {
	host     *Host
	port     uint16
	loopback bool
	backlog  chan *stream
	ended    chan struct{} // closed with the listener
	closed   bool          // guarded by Network.mu
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.ended:
		return nil, failed("accept", "tcp", net.ErrClosed)
	default:
	}
	select {
	case s := <-l.backlog:
		return s, nil
	case <-l.ended:
		return nil, failed("accept", "tcp", net.ErrClosed)
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.host.network.mu.Lock()
	defer l.host.network.mu.Unlock()
	if l.closed {
		return failed("close", "tcp", net.ErrClosed)
	}
	l.closeLocked()
	return nil
}

func (l *listener) closeLocked() {
	if l.closed {
		return
	}
	l.closed = true
	close(l.ended)
	delete(l.host.listeners, l.port)
	for {
		select {
		case s := <-l.backlog:
			s.out.reset(time.Now())
			s.closeLocked(l.host.network)
		default:
			return
		}
	}
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr {
	if l.loopback {
		return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1).To4(), Port: int(l.port)}
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(l.host.addr, l.port))
}
