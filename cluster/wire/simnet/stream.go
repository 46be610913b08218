package simnet

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// window is how many bytes of one direction may be under way or unread.
const window = 256 << 10

// segment holds the bytes of one write.
type segment struct {
	data []byte
	at   time.Time // when it is there, unless the link is cut until then
	here bool      // it was there before the link was cut
	end  bool      // the writer has closed
}

// pipe is one direction of a stream. Network.mu guards it.
type pipe struct {
	network        *Network
	route          route
	writer, reader *stream
	segments       []segment
	last           time.Time // when the newest segment is there
	unread         int       // bytes that count against the window
	withheld       int       // bytes that were read while the way back was cut
	broken         *segment  // a reset is on its way
	deaf           bool      // the reader has closed
	ended          bool      // the writer has closed and said so
	changed        chan struct{}
}

// wake makes reader and writer look again.
func (p *pipe) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// reset makes the reader hear that the connection is broken.
func (p *pipe) reset(at time.Time) {
	p.broken = &segment{at: at}
	p.wake()
}

// settle follows a change of the link: [0] is whether this direction is cut,
// [1] the way back. What was there stays there, what was not comes later.
func (p *pipe) settle(now time.Time, was, is [2]bool, delay time.Duration) {
	all := make([]*segment, 0, len(p.segments)+1)
	for i := range p.segments {
		all = append(all, &p.segments[i])
	}
	if p.broken != nil {
		all = append(all, p.broken)
	}
	for _, s := range all {
		switch {
		case !was[0] && is[0]:
			s.here = s.here || !s.at.After(now)
		case was[0] && !is[0] && !s.here && s.at.Before(now.Add(delay)):
			s.at = now.Add(delay)
		}
	}
	if n := len(p.segments); n > 0 && p.last.Before(p.segments[n-1].at) {
		p.last = p.segments[n-1].at
	}
	if !is[1] {
		p.unread -= p.withheld
		p.withheld = 0
	}
	p.wake()
}

// sendLocked puts a segment on its way.
func (p *pipe) sendLocked(now time.Time, s segment) {
	s.at = now.Add(p.network.delayLocked(p.route))
	if p.network.lostLocked(p.route) {
		s.at = s.at.Add(retransmission)
	}
	if s.at.Before(p.last) {
		s.at = p.last
	}
	p.last = s.at
	p.unread += len(s.data)
	p.segments = append(p.segments, s)
	p.wake()
}

// takeLocked moves what is there to b. It returns 0 and no error when nothing
// is there, with the time when something will be, if that is known.
func (p *pipe) takeLocked(now time.Time, b []byte) (n int, next time.Time, err error) {
	cut := p.network.linkLocked(p.route).Cut
	there := func(s *segment) bool { return s.here || !cut && !s.at.After(now) }
	if p.broken != nil && there(p.broken) {
		return 0, next, refusal("read", syscall.ECONNRESET)
	}
	for len(p.segments) > 0 && n < len(b) && there(&p.segments[0]) {
		s := &p.segments[0]
		if s.end {
			if n == 0 {
				err = io.EOF
			}
			break
		}
		m := copy(b[n:], s.data)
		n += m
		if s.data = s.data[m:]; len(s.data) == 0 {
			p.segments = p.segments[1:]
		}
	}
	if n > 0 {
		if p.network.linkLocked(p.route.back()).Cut {
			p.withheld += n
		} else {
			p.unread -= n
			p.wake()
		}
	}
	if !cut {
		if len(p.segments) > 0 {
			next = p.segments[0].at
		}
		if p.broken != nil && (next.IsZero() || p.broken.at.Before(next)) {
			next = p.broken.at
		}
	}
	return n, next, err
}

// stream is one end of a connection. It implements net.Conn.
type stream struct {
	network       *Network
	host          *Host
	local, remote netip.AddrPort
	in, out       *pipe

	// guarded by Network.mu
	closed, finished      bool // finished: nothing more is written
	dead                  bool // the host is down
	readLimit, writeLimit time.Time
}

// streamsLocked makes the two ends of a connection.
func (n *Network) streamsLocked(near, far netip.AddrPort) (*stream, *stream) {
	a, b := &stream{network: n, local: near, remote: far}, &stream{network: n, local: far, remote: near}
	there := &pipe{network: n, route: route{near.Addr(), far.Addr()}, writer: a, reader: b, changed: make(chan struct{})}
	back := &pipe{network: n, route: there.route.back(), writer: b, reader: a, changed: make(chan struct{})}
	a.in, a.out, b.in, b.out = back, there, there, back
	n.mu.pipes[there], n.mu.pipes[back] = struct{}{}, struct{}{}
	return a, b
}

// gone returns the error of an end that can do nothing any more.
func (s *stream) gone(op string, limit time.Time) error {
	switch {
	case s.dead:
		return failed(op, "tcp", errDown)
	case s.closed:
		return failed(op, "tcp", net.ErrClosed)
	case !limit.IsZero() && !time.Now().Before(limit):
		return failed(op, "tcp", os.ErrDeadlineExceeded)
	}
	return nil
}

// Read implements net.Conn.
func (s *stream) Read(b []byte) (int, error) {
	for {
		n, next, changed, err := s.read(b)
		if n > 0 || err != nil || len(b) == 0 {
			return n, err
		}
		await(changed, next)
	}
}

func (s *stream) read(b []byte) (n int, next time.Time, changed <-chan struct{}, err error) {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	if err := s.gone("read", s.readLimit); err != nil {
		return 0, next, nil, err
	}
	n, next, err = s.in.takeLocked(time.Now(), b)
	return n, earlier(next, s.readLimit), s.in.changed, err
}

// Write implements net.Conn.
func (s *stream) Write(b []byte) (int, error) {
	written := 0
	for {
		n, changed, limit, err := s.write(b[written:])
		written += n
		if err != nil || written == len(b) {
			return written, err
		}
		if n == 0 {
			await(changed, limit)
		}
	}
}

func (s *stream) write(b []byte) (n int, changed <-chan struct{}, limit time.Time, err error) {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	if err := s.gone("write", s.writeLimit); err != nil {
		return 0, nil, limit, err
	}
	now := time.Now()
	if s.finished {
		return 0, nil, limit, refusal("write", syscall.EPIPE)
	}
	if _, _, err := s.in.takeLocked(now, nil); err != nil { // the reset that a reader would meet
		return 0, nil, limit, refusal("write", syscall.ECONNRESET)
	}
	known := !s.network.linkLocked(s.out.route).Cut && !s.network.linkLocked(s.out.route.back()).Cut
	if s.out.deaf && known && !s.out.reader.host.silent {
		// An end that is told so when it writes must not be left waiting for the end when it reads:
		// no real connection is broken in one direction only, and gRPC tries again without a pause
		// until its reader has heard of it.
		s.in.reset(now)
		return 0, nil, limit, refusal("write", syscall.EPIPE)
	}
	if n = min(len(b), window-s.out.unread); n > 0 {
		s.out.sendLocked(now, segment{data: append([]byte(nil), b[:n]...)})
	}
	return n, s.out.changed, s.writeLimit, nil
}

// Close implements net.Conn.
func (s *stream) Close() error {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	if s.closed {
		return failed("close", "tcp", net.ErrClosed)
	}
	s.closeLocked(s.network)
	return nil
}

func (s *stream) closeLocked(n *Network) {
	if s.closed {
		return
	}
	s.finishLocked()
	s.closed, s.in.deaf = true, true
	s.in.wake()
	if s.in.writer.closed {
		delete(n.mu.pipes, s.in)
		delete(n.mu.pipes, s.out)
	}
}

// CloseWrite ends what the other end reads; this end can still read.
func (s *stream) CloseWrite() error {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	if err := s.gone("close", time.Time{}); err != nil {
		return err
	}
	s.finishLocked()
	return nil
}

func (s *stream) finishLocked() {
	if !s.finished && !s.dead {
		s.out.ended = true
		s.out.sendLocked(time.Now(), segment{end: true})
	}
	s.finished = true
	s.out.wake()
}

// LocalAddr implements net.Conn.
func (s *stream) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(s.local) }

// RemoteAddr implements net.Conn.
func (s *stream) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(s.remote) }

// SetDeadline implements net.Conn.
func (s *stream) SetDeadline(t time.Time) error { return s.limit(&t, &t) }

// SetReadDeadline implements net.Conn.
func (s *stream) SetReadDeadline(t time.Time) error { return s.limit(&t, nil) }

// SetWriteDeadline implements net.Conn.
func (s *stream) SetWriteDeadline(t time.Time) error { return s.limit(nil, &t) }

func (s *stream) limit(read, write *time.Time) error {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	if err := s.gone("set", time.Time{}); err != nil {
		return err
	}
	if read != nil {
		s.readLimit = *read
		s.in.wake()
	}
	if write != nil {
		s.writeLimit = *write
		s.out.wake()
	}
	return nil
}

// earlier returns the earlier time; the zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// await waits for a change, at most until then; the zero time is never.
func await(changed <-chan struct{}, until time.Time) {
	if until.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}
