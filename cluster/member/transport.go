package member

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// maxPacket is the longest packet that is read, in bytes.
const maxPacket = 64 << 10

// alias returns the address that hashicorp/memberlist knows a node by. The
// library wants IP addresses and takes a node that has got a new one for an
// impostor; here nodes are addressed by name, and the transport finds out where
// they are. So the alias follows from the name.
func alias(node string) string {
	return net.JoinHostPort(aliasIP(node).String(), strconv.Itoa(aliasPort))
}

const aliasPort = 1

func aliasIP(node string) net.IP {
	sum := sha256.Sum256([]byte(node))
	return net.IPv4(10, sum[0], sum[1], sum[2])
}

// transport implements memberlist.NodeAwareTransport.
type transport struct {
	self    string
	socket  net.PacketConn
	streams Streams
	address func(node string) (string, bool)

	incoming chan net.Conn
	packets  chan *memberlist.Packet
	ctx      context.Context //nolint:containedctx // of the transport's life: the library passes none
	stop     context.CancelFunc
	work     sync.WaitGroup
	resolver resolver
	ended    sync.Once

	mu struct {
		sync.Mutex
		open map[*stream]struct{} // nil after Shutdown
	}
}

func newTransport(ctx context.Context, self string, socket net.PacketConn, streams Streams, address func(node string) (string, bool)) *transport {
	t := &transport{
		self: self, socket: socket, streams: streams, address: address,
		incoming: make(chan net.Conn), packets: make(chan *memberlist.Packet),
	}
	t.ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	t.mu.open = map[*stream]struct{}{}
	_, t.resolver.names = socket.(*net.UDPConn)
	t.work.Go(t.receive)
	t.work.Go(t.accept)
	return t
}

// wait returns when nothing of the transport runs any more, after Shutdown.
func (t *transport) wait() { t.work.Wait() }

// FinalAdvertiseAddr implements memberlist.Transport.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return aliasIP(t.self), aliasPort, nil
}

// receive takes packets from the network.
func (t *transport) receive() {
	buf := make([]byte, maxPacket)
	for {
		n, from, err := t.socket.ReadFrom(buf)
		if t.ctx.Err() != nil {
			return
		}
		if err != nil { // of one packet; a socket that is broken for good must not keep a processor busy
			t.pause()
			continue
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), buf[:n]...), From: from, Timestamp: time.Now()}
		select {
		case t.packets <- p:
		case <-t.ctx.Done():
			return
		}
	}
}

// accept takes streams from the cluster port.
func (t *transport) accept() {
	for {
		conn, err := t.streams.Accept()
		if t.ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			t.pause()
			continue
		}
		s, ok := t.track(conn)
		if !ok {
			return
		}
		select {
		case t.incoming <- s:
		case <-t.ctx.Done():
			_ = s.Close()
			return
		}
	}
}

func (t *transport) pause() {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
	}
}

// track keeps a connection so that Shutdown can end it; ok is false when it is
// too late for that.
func (t *transport) track(conn net.Conn) (s *stream, ok bool) {
	s = &stream{Conn: conn, of: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.open == nil {
		_ = conn.Close()
		return nil, false
	}
	t.mu.open[s] = struct{}{}
	return s, true
}

// stream is a connection that Shutdown closes.
type stream struct {
	net.Conn
	of *transport
}

// Close implements net.Conn.
func (s *stream) Close() error {
	s.of.mu.Lock()
	delete(s.of.mu.open, s)
	s.of.mu.Unlock()
	return s.Conn.Close()
}

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.incoming }

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo([]byte, string) (time.Time, error) { return time.Time{}, errNoName }

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(string, time.Duration) (net.Conn, error) { return nil, errNoName }

var errNoName = errors.New("a node is addressed by its name")

// find returns where a node is.
func (t *transport) find(a memberlist.Address) (string, error) {
	if a.Name == "" {
		return "", errNoName
	}
	address, ok := t.address(a.Name)
	if !ok {
		return "", fmt.Errorf("nobody knows where %s is", a.Name)
	}
	return address, nil
}

// WriteToAddress implements memberlist.NodeAwareTransport. Its errors are those
// of a packet that is lost: the library asks another way.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	address, err := t.find(a)
	if err != nil {
		return time.Time{}, networkError(err)
	}
	to, err := t.resolver.resolve(t.ctx, address)
	if err != nil {
		return time.Time{}, networkError(err)
	}
	if _, err := t.socket.WriteTo(b, to); err != nil {
		return time.Time{}, networkError(err)
	}
	return time.Now(), nil
}

// networkError makes an error what the library takes for one of the network.
func networkError(err error) error { return &net.OpError{Op: "write", Net: "udp", Err: err} }

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	address, err := t.find(a)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	conn, err := t.streams.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	s, ok := t.track(conn)
	if !ok {
		return nil, net.ErrClosed
	}
	return s, nil
}

// Shutdown implements memberlist.Transport. It may be called again, and never
// fails: what cannot be closed is gone already.
func (t *transport) Shutdown() error {
	t.ended.Do(func() {
		t.stop()
		t.mu.Lock()
		open := t.mu.open
		t.mu.open = nil
		t.mu.Unlock()
		for s := range open {
			_ = s.Conn.Close()
		}
		_, _ = t.socket.Close(), t.streams.Close()
	})
	return nil
}

// resolver turns host:port into what a socket takes.
type resolver struct {
	names bool // ask the system for addresses of names

	mu    sync.Mutex
	known map[string]resolved
}

type resolved struct {
	addr  net.Addr
	err   error
	until time.Time
}

const (
	resolveTimeout = 500 * time.Millisecond
	resolveAgain   = 5 * time.Second
)

// namedAddr is an address as it was given.
type namedAddr string

// Network implements net.Addr.
func (namedAddr) Network() string { return "udp" }

// String implements net.Addr.
func (p namedAddr) String() string { return string(p) }

func (r *resolver) resolve(ctx context.Context, address string) (net.Addr, error) {
	if ap, err := netip.ParseAddrPort(address); err == nil {
		return net.UDPAddrFromAddrPort(ap), nil
	}
	if !r.names {
		return namedAddr(address), nil
	}
	r.mu.Lock()
	got, ok := r.known[address]
	r.mu.Unlock()
	if ok && time.Now().Before(got.until) {
		return got.addr, got.err
	}
	fresh := lookup(ctx, address)
	if fresh.err != nil && got.addr != nil {
		fresh.addr, fresh.err = got.addr, nil // better than nothing
	}
	fresh.until = time.Now().Add(resolveAgain)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[string]resolved{}
	}
	r.known[address] = fresh
	return fresh.addr, fresh.err
}

func lookup(ctx context.Context, address string) resolved {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return resolved{err: err}
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return resolved{err: err}
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return resolved{err: err}
	}
	return resolved{addr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(choose(ips), uint16(number)))}
}

// choose returns the first address of IPv4, which a socket of either kind can
// send to if it listens on all addresses, else the first one.
func choose(ips []netip.Addr) netip.Addr {
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() {
			return ip
		}
	}
	return ips[0]
}
