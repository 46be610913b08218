package wire

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/mem"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// Sizes of what travels on an Exchange, in bytes.
const (
	pieceSize = 64 << 10  // a larger body is cut, so that small ones pass it
	frameSize = 256 << 10 // what travels in one frame, about
	bodySize  = 256 << 20 // the largest body there is
	firstBody = 1 << 20   // what is set aside for one that comes in pieces
)

// outMessage is a call or an answer on its way out. It belongs to the frame writer once it
// has been put there, body included.
type outMessage struct {
	call     uint64
	op       wirepb.Op
	to       Addressee
	deadline time.Time // zero: none
	repair   bool
	cancel   bool
	fault    *wirepb.Fault
	body     *[]byte
	at       int           // bytes of body that are sent
	slot     chan struct{} // may be nil: gives its value back when the body is sent, or never will be
}

func (p *outMessage) len() int {
	if p.body == nil {
		return 0
	}
	return len(*p.body)
}

// end gives the body back.
func (p *outMessage) end() {
	recycle(p.body)
	p.body = nil
	if p.slot != nil {
		<-p.slot
	}
}

// frameWriter sends messages over one stream: all messages that wait go into one frame, and of a
// large body one piece at a time. A lone message is sent at once.
type frameWriter struct {
	mu struct {
		sync.Mutex
		queue  []*outMessage
		closed bool
	}
	wake chan struct{}
}

func newFrameWriter() *frameWriter { return &frameWriter{wake: make(chan struct{}, 1)} }

// put queues a message. When the frame writer is closed the message is ended.
func (l *frameWriter) put(p *outMessage) {
	l.mu.Lock()
	closed, first := l.mu.closed, len(l.mu.queue) == 0
	if !closed {
		l.mu.queue = append(l.mu.queue, p)
	}
	l.mu.Unlock()
	if closed {
		p.end()
		return
	}
	if first {
		wake(l.wake)
	}
}

// wake gives c, which has space for one value, a value unless it has one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// withdraw takes back what is queued for a call and reports whether nothing of
// it has been sent.
func (l *frameWriter) withdraw(call uint64) bool {
	l.mu.Lock()
	i := slices.IndexFunc(l.mu.queue, func(p *outMessage) bool { return p.call == call })
	if i < 0 {
		l.mu.Unlock()
		return false
	}
	p := l.mu.queue[i]
	l.mu.queue = slices.Delete(l.mu.queue, i, i+1)
	l.mu.Unlock()
	untouched := p.at == 0
	if !untouched {
		p.body = nil // a frame that is being sent may look at it still
	}
	p.end()
	return untouched
}

// run sends until ctx ends or a frame cannot be sent, and returns why. The writer
// is closed then.
func (l *frameWriter) run(ctx context.Context, send func(*wirepb.Frame) error) error {
	defer l.close()
	out := frameBuilder{frame: &wirepb.Frame{}}
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
		runtime.Gosched() // let others that are ready to call come along
		for l.fill(&out) {
			err := send(out.frame)
			out.done()
			if err != nil {
				return fmt.Errorf("send calls: %w", err)
			}
		}
	}
}

func (l *frameWriter) close() {
	l.mu.Lock()
	queue := l.mu.queue
	l.mu.queue, l.mu.closed = nil, true
	l.mu.Unlock()
	for _, p := range queue {
		p.end()
	}
}

// frameBuilder is a frame that is being put together, used again and again.
type frameBuilder struct {
	frame  *wirepb.Frame
	pieces []*wirepb.Piece
	ended  []*outMessage
}

// done ends what the frame has brought to an end.
func (o *frameBuilder) done() {
	for i, p := range o.ended {
		p.end()
		o.ended[i] = nil
	}
	o.ended = o.ended[:0]
}

func (o *frameBuilder) piece(i int) *wirepb.Piece {
	if i == len(o.pieces) {
		o.pieces = append(o.pieces, &wirepb.Piece{})
	}
	return o.pieces[i]
}

// fill makes a frame of what waits, false when nothing does.
func (l *frameWriter) fill(o *frameBuilder) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size, taken := 0, 0, 0
	rest := 0 // messages at the front of the queue that are not finished
	for _, p := range l.mu.queue {
		if size >= frameSize {
			break
		}
		taken++
		size += o.add(n, p)
		n++
		if p.at < p.len() {
			l.mu.queue[rest] = p
			rest++
		} else {
			o.ended = append(o.ended, p)
		}
	}
	// The unfinished ones go on after those that have not had their turn.
	var unfinished [frameSize/pieceSize + 1]*outMessage
	k := copy(unfinished[:], l.mu.queue[:rest])
	left := copy(l.mu.queue, l.mu.queue[taken:])
	left += copy(l.mu.queue[left:], unfinished[:k])
	clear(l.mu.queue[left:])
	l.mu.queue = l.mu.queue[:left]
	o.frame.Pieces = o.pieces[:n]
	return n > 0
}

// add puts the next piece of a message into the frame and returns its size.
func (o *frameBuilder) add(i int, p *outMessage) int {
	q := o.piece(i)
	q.Call, q.Cancel, q.Fault, q.Data = p.call, p.cancel, p.fault, nil
	q.Op, q.Timeout, q.Repair, q.Size, q.Copy, q.Generation = 0, 0, false, 0, 0, 0
	if p.at == 0 {
		q.Op, q.Repair, q.Copy, q.Generation = p.op, p.repair, p.to.Copy, p.to.Generation
		if !p.deadline.IsZero() {
			q.Timeout = uint64(max(time.Until(p.deadline).Microseconds(), 1))
		}
		if p.len() > pieceSize {
			q.Size = uint64(p.len())
		}
	}
	if p.body != nil {
		end := min(p.at+pieceSize, p.len())
		q.Data = (*p.body)[p.at:end]
		p.at = end
	}
	return len(q.Data) + 64
}

// received is a frame that has come in. Its pieces alias the buffers it came
// in, until release.
type received struct {
	wirepb.Frame
	buffer mem.Buffer
}

func (r *received) take(data mem.BufferSlice) error {
	r.buffer = data.MaterializeToBuffer(buffers{})
	r.ResetVT()
	return r.UnmarshalVTUnsafe(r.buffer.ReadOnlyData())
}

func (r *received) release() {
	if r.buffer != nil {
		r.buffer.Free()
		r.buffer = nil
	}
}

// inMessage is a call or answer of which everything has come.
type inMessage struct {
	call    uint64
	op      wirepb.Op
	to      Addressee
	timeout time.Duration // 0: none
	repair  bool
	body    []byte
	err     error // an answer: why there is none
}

// reassembly puts pieces together. It is used by one goroutine.
type reassembly struct {
	open map[uint64]*inMessage
	need map[uint64]int
}

// add takes a piece and returns what it completes, nil when more pieces
// follow. The result does not alias the piece.
func (a *reassembly) add(p *wirepb.Piece) (*inMessage, error) {
	w := a.open[p.Call]
	switch {
	case w != nil:
		w.body = append(w.body, p.Data...)
	case p.Size > bodySize:
		return nil, fault.Newf(fault.Internal, "a message of %d bytes is too large", p.Size)
	default:
		w = &inMessage{
			call: p.Call, op: p.Op, to: Addressee{p.Copy, p.Generation},
			timeout: time.Duration(p.Timeout) * time.Microsecond, repair: p.Repair, err: DecodeFault(p.Fault),
		}
		// Memory is taken as it is filled, not as it is announced.
		w.body = append(make([]byte, 0, max(min(int(p.Size), firstBody), len(p.Data))), p.Data...)
		if int(p.Size) <= len(p.Data) {
			return w, nil
		}
		if a.open == nil {
			a.open, a.need = map[uint64]*inMessage{}, map[uint64]int{}
		}
		a.open[p.Call], a.need[p.Call] = w, int(p.Size)
		return nil, nil
	}
	switch need := a.need[p.Call]; {
	case len(w.body) < need:
		return nil, nil
	case len(w.body) > need:
		return nil, fault.Newf(fault.Internal, "a message of %d bytes has more", need)
	}
	a.drop(p.Call)
	return w, nil
}

// drop forgets a call that will not be completed.
func (a *reassembly) drop(call uint64) {
	delete(a.open, call)
	delete(a.need, call)
}
