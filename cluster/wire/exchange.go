package wire

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// session is one node's Exchange with this one.
type session struct {
	server *Server
	from   string
	ctx    context.Context // of the stream
	frames *frameWriter
	slots  [classes]chan struct{} // one is taken by each call that is being done
	wg     sync.WaitGroup         // the workers
	jobs   chan job               // to workers that have nothing to do
	idle   atomic.Int64           // how many those are

	mu struct {
		sync.Mutex
		running map[uint64]context.CancelFunc
	}
}

// Exchange implements wirepb.NodeServer: each call runs on a goroutine of its
// own; answers that are ready together travel together.
func (s *Server) Exchange(stream grpc.BidiStreamingServer[wirepb.Frame, wirepb.Frame]) error {
	conn, err := caller(stream.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	e := &session{server: s, from: conn.Node(), ctx: ctx, frames: newFrameWriter(), jobs: make(chan job)}
	e.mu.running = map[uint64]context.CancelFunc{}
	for i := range e.slots {
		e.slots[i] = make(chan struct{}, s.inFlight)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer e.wg.Wait()
	defer cancel()
	wg.Go(func() {
		if e.frames.run(ctx, stream.Send) != nil {
			cancel() // the other node does not hear the answers any more
		}
	})
	return e.take(stream)
}

// take reads calls until the stream ends.
func (e *session) take(stream grpc.ServerStream) error {
	var in received
	var parts reassembly
	for {
		if err := stream.RecvMsg(&in); err != nil {
			return err
		}
		for _, p := range in.Pieces {
			if p.Cancel {
				parts.drop(p.Call)
				e.stop(p.Call)
				continue
			}
			w, err := parts.add(p)
			if err != nil {
				return err
			}
			if w != nil {
				e.start(w)
			}
		}
		in.release()
	}
}

// idleWorkers is how many workers of one session wait for the next call: their
// stacks have grown already.
const idleWorkers = 32

// job is a call to be done.
type job struct {
	*inMessage
	ctx    context.Context // of the call
	cancel context.CancelFunc
}

// start begins a call. Its time runs from now on, also while it waits for its
// turn.
func (e *session) start(w *inMessage) {
	ctx, cancel := e.context(w)
	j := job{w, ctx, cancel}
	e.mu.Lock()
	e.mu.running[w.call] = cancel
	e.mu.Unlock()
	select {
	case e.jobs <- j:
	default:
		e.wg.Go(func() { e.work(j) })
	}
}

// work does calls as long as there are some, and a few workers wait for more.
func (e *session) work(j job) {
	for {
		e.do(j)
		*j.inMessage = inMessage{} // who waits for the next call holds nothing of the last one
		if e.idle.Add(1) > idleWorkers {
			e.idle.Add(-1)
			return
		}
		select {
		case j = <-e.jobs:
			e.idle.Add(-1)
		case <-e.ctx.Done():
			return
		}
	}
}

// do does one call when it is its turn.
func (e *session) do(j job) {
	defer j.cancel()
	c, known := e.server.call(j.op, e.from)
	slot := e.slots[c.Class]
	select {
	case slot <- struct{}{}:
	case <-j.ctx.Done():
		e.finish(j.call, nil, j.ctx.Err(), nil)
		return
	}
	var answer Message
	err := errUnknown(j.op)
	if known {
		err = e.server.guarded(j.op, func() (err error) {
			answer, err = c.Do(j.ctx, j.to, j.body)
			return err
		})
	}
	e.finish(j.call, answer, err, slot)
}

func (e *session) context(w *inMessage) (context.Context, context.CancelFunc) {
	ctx := marked(e.ctx, w.repair)
	if w.timeout > 0 {
		return context.WithTimeout(ctx, w.timeout)
	}
	return context.WithCancel(ctx)
}

// stop ends a call whose caller has given up. Its answer is not wanted, but comes all the same.
func (e *session) stop(call uint64) {
	e.mu.Lock()
	cancel := e.mu.running[call]
	e.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// finish sends an answer; when it is on its way, slot is free again.
func (e *session) finish(call uint64, answer Message, err error, slot chan struct{}) {
	e.mu.Lock()
	delete(e.mu.running, call)
	e.mu.Unlock()
	p := &outMessage{call: call, slot: slot}
	if err == nil {
		p.body, err = marshal(answer)
	}
	if err == nil && len(*p.body) > bodySize {
		err = fault.Newf(fault.RequestTooLarge, "an answer of %d bytes is too large", len(*p.body)) // no other copy has a smaller one
		recycle(p.body)
		p.body = nil
	}
	p.fault = EncodeFault(err)
	e.frames.put(p)
}

// call returns what does an operation for a node; false when this one does not.
func (s *Server) call(op wirepb.Op, from string) (Call, bool) {
	if op == wirepb.Op_ASK {
		return Call{ClassAsk, func(ctx context.Context, _ Addressee, body []byte) (Message, error) { return s.ask(ctx, from, body) }}, true
	}
	c, ok := s.operations.Calls[op]
	return c, ok
}

// ask does a call of a service.
func (s *Server) ask(ctx context.Context, from string, body []byte) (Message, error) {
	var m wirepb.AskRequest
	if err := Decode(body, &m); err != nil {
		return nil, err
	}
	h := s.handlers[m.Service]
	if h == nil {
		return nil, fault.New(fault.Unavailable, fmt.Sprintf("This node does not serve %q.", m.Service))
	}
	answer, err := h(ctx, from, m.Request)
	if err != nil {
		return nil, err
	}
	return &wirepb.Bytes{Data: answer}, nil
}
