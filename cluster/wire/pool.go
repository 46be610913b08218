package wire

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// Times of a pool.
const (
	dialTime  = time.Second // for one attempt; who calls a node for the first time waits as long
	firstRest = 50 * time.Millisecond
	longRest  = time.Second // between attempts
)

// Pool is the connections to other nodes. The first one who asks for a node
// makes the pool connect to it, and it stays connected as long as the port can
// resolve the node's name.
//
// Locks: Pool.mu, then Peer.mu; nothing is waited for while one is held.
type Pool struct {
	port    *Port
	logger  *zap.Logger
	started chan struct{} // closed by Run

	mu struct {
		sync.Mutex
		running     *life           // nil while Run does not
		wg          *sync.WaitGroup // the goroutines of Run
		peers       map[string]*Peer
		subscribers map[*subscriber]struct{}
	}
}

type subscriber struct{ f func(node string, up bool) }

// NewPool returns a pool that makes no connection before Run. log may be nil.
func NewPool(p *Port, log *zap.Logger) *Pool {
	if log == nil {
		log = zap.NewNop()
	}
	o := &Pool{port: p, logger: log, started: make(chan struct{})}
	o.mu.peers = map[string]*Peer{}
	o.mu.subscribers = map[*subscriber]struct{}{}
	return o
}

// Run keeps the connections until ctx ends, closes them all then, which fails
// the calls under way, and returns nil when none of its goroutines is left. It
// is called once.
func (o *Pool) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer wg.Wait()
	defer cancel()
	o.mu.Lock()
	o.mu.running, o.mu.wg = &life{ctx}, &wg
	o.mu.Unlock()
	close(o.started)
	<-ctx.Done()
	o.mu.Lock()
	o.mu.running, o.mu.wg = nil, nil
	clear(o.mu.peers)
	o.mu.Unlock()
	return nil
}

// Started returns a channel that is closed once Run has begun: no node can be
// reached before.
func (o *Pool) Started() <-chan struct{} { return o.started }

// Peer returns the copies and services of another node, nil when the node is
// unknown or cannot be reached now. It does not wait: calls on a node that has
// not been asked for before wait until it is connected, for a second at most.
func (o *Pool) Peer(node string) *Peer {
	p := o.peer(node)
	if p == nil || p.down() {
		return nil
	}
	return p
}

// peer returns the peer of that name, which connects from now on; nil when the
// pool does not run or the node is unknown.
func (o *Pool) peer(node string) *Peer {
	o.mu.Lock()
	p := o.mu.peers[node]
	o.mu.Unlock()
	if p != nil {
		return p
	}
	if _, ok := o.port.o.Resolve(node); !ok {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.mu.peers[node]; p != nil || o.mu.running == nil || o.mu.running.ctx.Err() != nil {
		return p
	}
	p = newPeer(node)
	o.mu.peers[node] = p
	ctx := o.mu.running.ctx
	o.mu.wg.Go(func() { o.keep(ctx, p) })
	return p
}

// Reachable reports whether calls to the node can be tried: it is connected, or
// has not been asked for before and is known.
func (o *Pool) Reachable(node string) bool { return o.Peer(node) != nil }

// Subscribe makes the pool call f whenever a node becomes reachable or
// unreachable, one call after the other for one node. f must not block. After
// cancel f may still be called by a change that has happened already.
func (o *Pool) Subscribe(f func(node string, up bool)) (cancel func()) {
	s := &subscriber{f}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.subscribers[s] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.mu.subscribers, s)
	}
}

func (o *Pool) tell(node string, up bool) {
	o.mu.Lock()
	all := make([]*subscriber, 0, len(o.mu.subscribers))
	for s := range o.mu.subscribers {
		all = append(all, s)
	}
	o.mu.Unlock()
	for _, s := range all {
		s.f(node, up)
	}
}

// Ask sends a request to a service of another node and returns its answer. The
// errors are those of the service's Handler; fault.NodeDown when the node
// cannot be reached.
func (o *Pool) Ask(ctx context.Context, node, service string, request []byte) ([]byte, error) {
	p := o.peer(node) //nolint:contextcheck // connections outlive the call that needs them first
	if p == nil {
		return nil, unsent{fault.Newf(fault.NodeDown, "Node %s is not known here, or this node does not run.", node)}
	}
	return p.Ask(ctx, service, request)
}

// keep keeps a peer connected until ctx ends or the node is not known any more.
func (o *Pool) keep(ctx context.Context, p *Peer) {
	lost := func(err error) {
		first := p.lose(down(p.node, err))
		if first && ctx.Err() == nil {
			o.logger.Warn("node is down", zap.String("node", p.node), zap.Error(err))
			o.tell(p.node, false)
		}
	}
	pause := time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()
		l, err := o.connect(ctx, p.node)
		if err != nil {
			lost(err)
		} else {
			o.logger.Info("connected", zap.String("node", p.node), zap.Int("version", l.conn.Version()))
			p.conn.Store(l)
			p.settle(nil)
			o.tell(p.node, true)
			l.run(lost)
		}
		if _, ok := o.port.o.Resolve(p.node); !ok {
			o.forget(p)
			return
		}
		if time.Since(began) > longRest {
			pause = 0
		}
		pause = min(max(2*pause, firstRest), longRest)
		rest(ctx, pause)
	}
}

func (o *Pool) forget(p *Peer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.peers[p.node] == p {
		delete(o.mu.peers, p.node)
	}
}

func (o *Pool) connect(ctx context.Context, node string) (*clientConn, error) {
	dial, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	c, err := o.port.dialNode(dial, purposeRPC, node)
	if err != nil {
		return nil, err
	}
	l, err := newClientConn(ctx, c, o.port.o.NodeDownAfter/(silentTurns+1))
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return l, nil
}
