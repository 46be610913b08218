package simnet

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	maxPacket  = 65507 // bytes
	maxWaiting = 512   // packets that have not been read yet; more are lost
)

// packet is one datagram.
type packet struct {
	data []byte
	from netip.AddrPort
	at   time.Time // when it is there
}

// socket implements net.PacketConn.
type socket struct {
	host *Host
	port uint16

	// guarded by Network.mu
	waiting   []packet // by arrival
	changed   chan struct{}
	readLimit time.Time
	closed    bool
}

// lose drops what was on its way over a link that is cut now.
func (s *socket) lose(now time.Time, cut func(from netip.Addr) bool) {
	s.waiting = slices.DeleteFunc(s.waiting, func(p packet) bool { return p.at.After(now) && cut(p.from.Addr()) })
}

func (s *socket) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// ReadFrom implements net.PacketConn. What does not fit in b is lost.
func (s *socket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		p, next, changed, err := s.next()
		if err != nil {
			return 0, nil, err
		}
		if p != nil {
			return copy(b, p.data), net.UDPAddrFromAddrPort(p.from), nil
		}
		await(changed, next)
	}
}

func (s *socket) next() (p *packet, next time.Time, changed <-chan struct{}, err error) {
	n := s.host.network
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	switch {
	case s.closed:
		return nil, next, nil, failed("read", "udp", net.ErrClosed)
	case !s.readLimit.IsZero() && !now.Before(s.readLimit):
		return nil, next, nil, failed("read", "udp", os.ErrDeadlineExceeded)
	case len(s.waiting) == 0:
		return nil, s.readLimit, s.changed, nil
	case s.waiting[0].at.After(now):
		return nil, earlier(s.waiting[0].at, s.readLimit), s.changed, nil
	}
	first := s.waiting[0]
	s.waiting = s.waiting[1:]
	return &first, next, nil, nil
}

// WriteTo implements net.PacketConn. The sender does not learn what became of the packet.
func (s *socket) WriteTo(b []byte, to net.Addr) (int, error) {
	addr, port, _, err := s.host.parse(to.String())
	if err != nil {
		return 0, failed("write", "udp", err)
	}
	if len(b) > maxPacket {
		return 0, failed("write", "udp", os.NewSyscallError("sendto", syscall.EMSGSIZE))
	}
	n := s.host.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.closed {
		return 0, failed("write", "udp", net.ErrClosed)
	}
	r := route{s.host.addr, addr}
	there := n.mu.hosts[addr]
	if there == nil || n.linkLocked(r).Cut || n.lostLocked(r) {
		return len(b), nil
	}
	other := there.sockets[port]
	if other == nil || len(other.waiting) >= maxWaiting {
		return len(b), nil
	}
	p := packet{append([]byte(nil), b...), netip.AddrPortFrom(s.host.addr, s.port), time.Now().Add(n.delayLocked(r))}
	i, _ := slices.BinarySearchFunc(other.waiting, p, func(a, b packet) int {
		if a.at.After(b.at) {
			return 1
		}
		return -1 // behind those of the same time
	})
	other.waiting = slices.Insert(other.waiting, i, p)
	other.wake()
	return len(b), nil
}

// Close implements net.PacketConn.
func (s *socket) Close() error {
	n := s.host.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.closed {
		return failed("close", "udp", net.ErrClosed)
	}
	s.closeLocked()
	return nil
}

func (s *socket) closeLocked() {
	if s.closed {
		return
	}
	s.closed, s.waiting = true, nil
	delete(s.host.sockets, s.port)
	s.wake()
}

// LocalAddr implements net.PacketConn.
func (s *socket) LocalAddr() net.Addr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(s.host.addr, s.port))
}

// SetDeadline implements net.PacketConn.
func (s *socket) SetDeadline(t time.Time) error { return s.SetReadDeadline(t) }

// SetReadDeadline implements net.PacketConn.
func (s *socket) SetReadDeadline(t time.Time) error {
	n := s.host.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if s.closed {
		return failed("set", "udp", net.ErrClosed)
	}
	s.readLimit = t
	s.wake()
	return nil
}

// SetWriteDeadline implements net.PacketConn; writing never waits.
func (s *socket) SetWriteDeadline(time.Time) error { return nil }
