package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/status"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// Times and sizes of a connection.
const (
	pingEvery    = 250 * time.Millisecond // while it is in use, unless PortOptions.NodeDownAfter says otherwise
	idlePings    = 4                      // of so many turns one pings while it is not
	inUse        = 10 * time.Second       // after the last call
	silentTurns  = 3                      // turns without a byte after which the node counts as down
	streamWindow = 1 << 20                // bytes one stream may have under way
	connWindow   = 16 << 20               // bytes all streams of a connection may have under way
	classBytes   = 64 << 20               // calls of one class under way, in bytes
	callBytes    = 16 << 10               // what a call counts beside its body
)

// call is one that waits for its answer.
type call struct {
	out  outMessage    // what is sent; the frame writer's
	done chan struct{} // gets one value, with what follows
	body []byte
	err  error
}

// clientConn is one connection to another node, from when it stands until the node
// stops answering. After that it is never used again: a new one is made.
type clientConn struct {
	node    string
	every   time.Duration // between pings while it is in use
	conn    *Conn
	cc      *grpc.ClientConn
	client  wirepb.NodeClient
	ctx     context.Context // of every stream that is its own
	cancel  context.CancelCauseFunc
	frames  *frameWriter
	space   [classes]*semaphore.Weighted
	used    atomic.Int64 // time of the last call, nanoseconds
	streams atomic.Int64 // streams that are open beside Exchange and Ping
	watches *watches
	dones   sync.Pool // of chan struct{} with space for one value, to which no goroutine will send any more

	mu struct {
		sync.Mutex
		last  uint64
		calls map[uint64]*call
		err   error // why the connection has ended
	}
}

// callOptions are those of every call on a connection or a server.
func callOptions() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(bodySize), grpc.MaxCallSendMsgSize(bodySize),
	}
}

// newClientConn begins to talk over a connection. ctx ends it.
func newClientConn(ctx context.Context, conn *Conn, every time.Duration) (*clientConn, error) {
	var once sync.Once
	handOut := func(context.Context, string) (net.Conn, error) {
		err := errors.New("the connection is lost")
		once.Do(func() { err = nil })
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
	cc, err := grpc.NewClient("passthrough:///"+conn.Node(),
		grpc.WithContextDialer(handOut), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(callOptions()...), grpc.WithAuthority("divan"),
		grpc.WithInitialWindowSize(streamWindow), grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithReadBufferSize(64<<10), grpc.WithWriteBufferSize(64<<10), grpc.WithIdleTimeout(0),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), experimental.WithBufferPool(buffers{}))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", conn.Node(), err)
	}
	l := &clientConn{node: conn.Node(), every: every, conn: conn, cc: cc, client: wirepb.NewNodeClient(cc), frames: newFrameWriter()}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	for i := range l.space {
		l.space[i] = semaphore.NewWeighted(classBytes)
	}
	l.watches = newWatches(l)
	l.mu.calls = map[uint64]*call{}
	l.use()
	return l, nil
}

// run keeps the connection going until it breaks or its context ends. lost is told
// why before any call under way fails.
func (l *clientConn) run(lost func(error)) {
	var wg sync.WaitGroup
	part := func(name string, f func() error) {
		wg.Go(func() {
			err := f()
			l.cancel(fmt.Errorf("%s: %w", name, err)) // the first one counts
		})
	}
	exchange, err := l.client.Exchange(l.ctx)
	if err == nil {
		part("send", func() error { return l.frames.run(l.ctx, exchange.Send) })
		part("receive", func() error { return l.receive(exchange) })
		part("ping", func() error { return l.ping() })
		part("watch", func() error { return l.watches.run() })
	} else {
		l.cancel(err)
	}
	<-l.ctx.Done()
	err = context.Cause(l.ctx)
	lost(err)
	_ = l.conn.Close() // first, so that nothing below waits to say goodbye
	l.fail(down(l.node, err))
	_ = l.cc.Close()
	wg.Wait()
}

// fail ends every call under way.
func (l *clientConn) fail(err error) {
	l.mu.Lock()
	calls := l.mu.calls
	l.mu.calls, l.mu.err = nil, err
	l.mu.Unlock()
	for _, c := range calls {
		c.err = err
		c.done <- struct{}{}
	}
}

// receive takes answers.
func (l *clientConn) receive(exchange grpc.ClientStream) error {
	var in received
	var parts reassembly
	for {
		if err := exchange.RecvMsg(&in); err != nil {
			return fmt.Errorf("answers: %w", err)
		}
		for _, p := range in.Pieces {
			w, err := parts.add(p)
			if err != nil {
				return err
			}
			if w != nil {
				l.answer(w)
			}
		}
		in.release()
	}
}

// answer wakes the caller that waits for it; it may have given up.
func (l *clientConn) answer(w *inMessage) {
	l.mu.Lock()
	c := l.mu.calls[w.call]
	delete(l.mu.calls, w.call)
	l.mu.Unlock()
	if c != nil {
		c.body, c.err = w.body, w.err
		c.done <- struct{}{}
	}
}

// use notes that the connection is used, which makes it ping often.
func (l *clientConn) use() { l.used.Store(time.Now().UnixNano()) }

func (l *clientConn) busy(now time.Time) bool {
	return l.streams.Load() > 0 || now.UnixNano()-l.used.Load() < int64(inUse)
}

// ping ends when the other node has been silent for too long: neither an
// answer to a ping has come nor anything else.
func (l *clientConn) ping() error {
	beats, err := l.client.Ping(l.ctx)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer l.cancel(errors.New("no more pings"))
	wg.Go(func() { // answers count as bytes received
		for {
			if _, err := beats.Recv(); err != nil {
				l.cancel(fmt.Errorf("ping: %w", err))
				return
			}
		}
	})
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	s := silence{every: l.every}
	for turn := uint64(0); ; turn++ {
		select {
		case <-l.ctx.Done():
			return l.ctx.Err()
		case <-tick.C:
		}
		now := time.Now()
		if s.dead(now, l.conn.received.Load()) {
			err := fmt.Errorf("node %s does not answer", l.node)
			l.cancel(err)
			return err
		}
		if l.busy(now) || turn%idlePings == 0 {
			if err := beats.Send(&wirepb.Beat{Number: turn}); err != nil {
				return err
			}
			s.asked()
		}
	}
}

// silence judges by turns whether the other side of a connection is alive. At first it
// has heard nothing and asked nothing.
type silence struct {
	every time.Duration // a turn
	heard int64         // bytes
	turns int           // since the first question that nothing has come after
	last  time.Time
}

// dead is asked each turn; bytes counts what has been received in all. A turn
// that comes much too late says something about this process only, so it does
// not count.
func (s *silence) dead(now time.Time, bytes int64) bool {
	late := !s.last.IsZero() && now.Sub(s.last) > 2*s.every
	s.last = now
	switch {
	case bytes != s.heard:
		s.heard, s.turns = bytes, 0
	case s.turns > 0 && !late:
		s.turns++
	}
	return s.turns > silentTurns
}

// asked notes that a ping is sent.
func (s *silence) asked() { s.turns = max(s.turns, 1) }

// do sends a call and waits for its answer, whose body is the caller's. The
// request is encoded before do waits for anything.
func (l *clientConn) do(ctx context.Context, r *Request) ([]byte, error) {
	l.use()
	body, err := marshal(r.Body)
	if err != nil {
		return nil, err
	}
	if len(*body) > bodySize {
		n := len(*body)
		recycle(body)
		return nil, fault.Newf(fault.RequestTooLarge, "a message of %d bytes to node %s is too large", n, l.node)
	}
	weight := int64(min(len(*body)+callBytes, classBytes))
	space := l.space[r.Class]
	if !space.TryAcquire(weight) {
		if err := l.acquire(ctx, space, weight); err != nil {
			recycle(body)
			return nil, err
		}
	}
	defer space.Release(weight)
	done, ok := l.dones.Get().(chan struct{})
	if !ok {
		done = make(chan struct{}, 1)
	}
	c := &call{done: done, out: outMessage{op: r.Op, to: r.To, body: body, repair: IsRepair(ctx)}}
	p := &c.out
	p.deadline, _ = ctx.Deadline()
	l.mu.Lock()
	if err := l.mu.err; err != nil {
		l.mu.Unlock()
		recycle(body)
		return nil, err
	}
	l.mu.last++
	p.call = l.mu.last
	id := p.call
	l.mu.calls[id] = c
	l.mu.Unlock()
	l.frames.put(p) // a closed frames means that fail comes
	select {
	case <-done:
		l.dones.Put(done)
		return c.body, c.err
	case <-ctx.Done():
	}
	return l.abandon(ctx, id, c)
}

// acquire waits for space among the calls under way.
func (l *clientConn) acquire(ctx context.Context, space *semaphore.Weighted, weight int64) error {
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	defer (&life{l.ctx}).then(cancel)()
	if err := space.Acquire(either, weight); err == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.gone(nil)
}

// gone returns the error of a call that the end of the connection has ended; err is the error that
// was seen of that end.
func (l *clientConn) gone(err error) error {
	if cause := context.Cause(l.ctx); cause != nil {
		err = cause
	}
	return down(l.node, err)
}

// abandon gives a call up, unless its answer has just come.
func (l *clientConn) abandon(ctx context.Context, id uint64, c *call) ([]byte, error) {
	l.mu.Lock()
	_, waiting := l.mu.calls[id]
	delete(l.mu.calls, id)
	l.mu.Unlock()
	if !waiting {
		<-c.done
		return c.body, c.err
	}
	if !l.frames.withdraw(id) {
		l.frames.put(&outMessage{call: id, cancel: true})
	}
	return nil, ctx.Err()
}

// lost says what an error of a stream on the connection means to its caller: the end
// of the caller's context, or a node that cannot be reached.
func (l *clientConn) lost(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if status.Code(err) == codes.DeadlineExceeded { // the other side was the first to see it
		return context.DeadlineExceeded
	}
	return l.gone(err)
}
