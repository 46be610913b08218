package wire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"divan/cluster/wire/wirepb"
	"divan/storage/fault"
)

// Peer is another node: what it does with its copies, and its services. A node that
// cannot be reached, or stops answering while a call is under way, makes it fail with
// fault.NodeDown.
type Peer struct {
	node string
	conn atomic.Pointer[clientConn] // nil: not connected

	settled chan struct{} // closed after the first attempt to connect
	once    sync.Once
	mu      struct {
		sync.Mutex
		err error // why the last attempt failed; nil before that and while it is connected
	}
}

func newPeer(node string) *Peer { return &Peer{node: node, settled: make(chan struct{})} }

// down reports whether calls would fail at once.
func (p *Peer) down() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.err != nil
}

// settle notes the outcome of an attempt to connect, or the end of a
// connection, and reports whether the node was not known to be down.
func (p *Peer) settle(err error) bool {
	p.mu.Lock()
	was := p.mu.err
	p.mu.err = err
	p.mu.Unlock()
	p.once.Do(func() { close(p.settled) })
	return was == nil
}

// lose notes that there is no connection.
func (p *Peer) lose(err error) bool {
	p.conn.Store(nil)
	return p.settle(err)
}

// connected returns the connection. Before the first attempt to connect is over it
// waits for that, or for done.
func (p *Peer) connected(done <-chan struct{}) (*clientConn, error) {
	if l := p.conn.Load(); l != nil {
		return l, nil
	}
	t := time.NewTimer(dialTime)
	defer t.Stop()
	select {
	case <-p.settled:
	case <-done:
	case <-t.C:
		return nil, fault.Newf(fault.NodeDown, "Node %s cannot be reached: it does not answer.", p.node)
	}
	if l := p.conn.Load(); l != nil {
		return l, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.err == nil { // it is coming up, or going down, this moment
		return nil, down(p.node, nil)
	}
	return nil, p.mu.err
}

// reach is connected for a call with a context.
func (p *Peer) reach(ctx context.Context) (*clientConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := p.connected(ctx.Done())
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, unsent{err}
	}
	return l, nil
}

// opened is a stream of a request that is open on a connection.
type opened struct {
	ctx    context.Context // of the request
	conn   *clientConn
	cancel context.CancelFunc
	closed atomic.Bool
}

// open counts o as a stream of a request and returns the context to open it with.
// Unless that fails, o has to be ended.
func (p *Peer) open(ctx context.Context, o *opened) (inner context.Context, err error) {
	if o.conn, err = p.reach(ctx); err != nil {
		return nil, err
	}
	o.conn.use()
	o.conn.streams.Add(1)
	o.ctx = ctx
	inner, o.cancel = context.WithCancel(ctx)
	return inner, nil
}

// end lets go of the stream. It may be called more than once.
func (o *opened) end() {
	if !o.closed.Swap(true) {
		o.cancel()
		o.conn.streams.Add(-1)
	}
}

// lost says what an error of the stream means to its caller.
func (o *opened) lost(err error) error { return o.conn.lost(o.ctx, err) }

// Name returns the name of the node.
func (p *Peer) Name() string { return p.node }

// Call has the node do an operation and decodes its answer into answer, which
// aliases memory of its own.
func (p *Peer) Call(ctx context.Context, r Request, answer Message) error {
	l, err := p.reach(ctx)
	if err != nil {
		return err
	}
	body, err := l.do(ctx, &r)
	if err != nil {
		return err
	}
	return Decode(body, answer)
}

// Ask sends a request to a service of the node and returns its answer. The
// errors are those of the service's Handler.
func (p *Peer) Ask(ctx context.Context, service string, request []byte) ([]byte, error) {
	var answer wirepb.Bytes
	err := p.Call(ctx, Request{Op: wirepb.Op_ASK, Class: ClassAsk, Body: &wirepb.AskRequest{Service: service, Request: request}}, &answer)
	if err != nil {
		return nil, err
	}
	return answer.Data, nil
}
