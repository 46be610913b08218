package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loops is how many loops drive the lanes: one per processor that they may use.
func loops(cfg Config) int { return max(cfg.Procs, 1) }

// loop drives a crew with epoll: one goroutine for all its lanes. Neither the
// sockets nor the system calls are any business of the Go runtime, so that an
// answer wakes this goroutine and nothing else: told of a call, the scheduler
// would look for other work for the processor, find none and wake threads for
// it, which costs more than the call. It is not told of the waiting either;
// what else there is to do in the process (a line of progress) then waits for
// the ten milliseconds after which the runtime interrupts any goroutine.
type loop struct {
	*crew
	epoll  int
	remote unix.Sockaddr
	family int
	buf    []byte // for what is read; an answer keeps what it needs
	open   int    // lanes that have not stopped
}

// tick is how often a loop that has nothing to do looks at the clock, in
// milliseconds.
const tick = 50

// run drives the lanes until ctx ends.
func (c *crew) run(ctx context.Context) error {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	defer func() { _ = unix.Close(epoll) }()
	l := &loop{crew: c, epoll: epoll, buf: make([]byte, 64<<10), open: len(c.lanes)}
	l.remote, l.family = sockaddr(c.to.addr)
	defer func() {
		for _, n := range l.lanes {
			l.hangUp(n)
		}
	}()
	for _, n := range l.lanes {
		l.next(ctx, n)
	}
	events := make([]unix.EpollEvent, len(l.lanes))
	swept := time.Now()
	for l.open > 0 {
		count, errno := wait(epoll, events)
		if errno != 0 && errno != unix.EINTR {
			return fmt.Errorf("epoll: %w", errno)
		}
		for _, e := range events[:count] {
			l.ready(ctx, l.lanes[e.Fd], e.Events)
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil
		}
		if now := time.Now(); now.Sub(swept) > tick*time.Millisecond {
			l.sweep(ctx, now)
			swept = now
		}
	}
	return nil
}

// sweep gives up requests that take too long.
func (l *loop) sweep(ctx context.Context, now time.Time) {
	for _, n := range l.lanes {
		if n.fd >= 0 && now.Sub(n.start) > l.patience {
			l.broken(ctx, n, errSlow)
		}
	}
}

// next starts the lane's next request, or stops the lane.
func (l *loop) next(ctx context.Context, n *lane) {
	for l.prepare(ctx, n) {
		err := l.connect(n)
		if err == nil {
			err = l.send(n)
		}
		if err == nil {
			return
		}
		l.hangUp(n)
		l.failed(err)
	}
	l.hangUp(n)
	l.open--
}

// ready does what a socket is ready for.
func (l *loop) ready(ctx context.Context, n *lane, events uint32) {
	if n.fd < 0 {
		return
	}
	if err := l.send(n); err != nil {
		l.broken(ctx, n, err)
		return
	}
	for n.fd >= 0 {
		count, errno := transfer(unix.SYS_READ, n.fd, l.buf)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return
		case errno != 0:
			l.broken(ctx, n, fmt.Errorf("read: %w", errno))
			return
		case count == 0:
			l.ended(ctx, n)
			return
		}
		done, err := l.take(n, l.buf[:count])
		if err != nil {
			l.broken(ctx, n, err)
			return
		}
		if done && (n.answer.closes || n.sent < len(n.request)) {
			l.hangUp(n)
			l.next(ctx, n)
			return
		}
		if done {
			l.next(ctx, n)
		}
		// epoll tells only of what is new, so that everything must be read;
		// less than there was room for is everything, unless the end is near
		if count < len(l.buf) && events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) == 0 {
			return
		}
	}
}

// ended is what to do when the server has closed the connection.
func (l *loop) ended(ctx context.Context, n *lane) {
	if err := l.end(n); err != nil {
		l.broken(ctx, n, err)
		return
	}
	l.hangUp(n)
	l.next(ctx, n)
}

// broken counts a failed request and goes on with a new connection.
func (l *loop) broken(ctx context.Context, n *lane, err error) {
	l.failed(err)
	l.hangUp(n)
	l.next(ctx, n)
}

// hangUp closes the lane's socket.
func (l *loop) hangUp(n *lane) {
	if n.fd >= 0 {
		_ = unix.Close(n.fd) // which also takes it out of epoll
		n.fd = -1
	}
}

// connect makes the lane's socket, unless it has one. It does not wait: until
// the connection stands, the socket cannot be written to.
func (l *loop) connect(n *lane) error {
	if n.fd >= 0 {
		return nil
	}
	fd, err := unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	n.fd = fd
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if err := unix.Connect(fd, l.remote); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("connect: %w", err)
	}
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(n.index)}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// send writes what the socket takes of the request.
func (l *loop) send(n *lane) error {
	for n.sent < len(n.request) {
		count, errno := transfer(unix.SYS_WRITE, n.fd, n.request[n.sent:])
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return nil
		case errno != 0:
			return fmt.Errorf("write: %w", errno)
		default:
			n.sent += count
		}
	}
	return nil
}

// sockaddr returns the address and its family.
func sockaddr(a *net.TCPAddr) (unix.Sockaddr, int) {
	if ip := a.IP.To4(); ip != nil {
		return &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(ip)}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Port: a.Port, Addr: [16]byte(a.IP.To16())}, unix.AF_INET6
}

// wait waits for events, a tick at most.
func wait(epoll int, events []unix.EpollEvent) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), tick, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// transfer reads from or writes to a socket what is possible at once.
func transfer(call uintptr, fd int, p []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
