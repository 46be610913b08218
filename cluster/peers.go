package cluster

import (
	"sync"
	"sync/atomic"

	"divan/cluster/replica"
	"divan/cluster/wire"
)

// others is the nodes besides this one.
type others interface {
	// find returns the copies of a node; nil when it cannot be reached now.
	find(node string) replica.Copies
	// subscribe has f called when a node comes or goes, until cancel is.
	subscribe(f func(node string, up bool)) (cancel func())
}

// nobody is others of a node that stands alone.
type nobody struct{}

func (nobody) find(string) replica.Copies                 { return nil }
func (nobody) subscribe(func(string, bool)) (stop func()) { return func() {} }

// presence counts the comings and goings of nodes, so that what was worked out
// from them is known to be out of date, and wakes those that wait for news of
// a copy elsewhere.
//
// LOCKS: mu guards the map only.
type presence struct {
	epoch  atomic.Uint64
	mu     sync.Mutex
	wakers map[chan struct{}]struct{}
}

// changed tells that a node has come or gone.
func (p *presence) changed(string, bool) {
	p.epoch.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.wakers {
		wake(c)
	}
}

// tell has a value sent to c, which has room for one, when a node comes or
// goes, until forget.
func (p *presence) tell(c chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wakers == nil {
		p.wakers = make(map[chan struct{}]struct{})
	}
	p.wakers[c] = struct{}{}
}

func (p *presence) forget(c chan struct{}) {
	p.mu.Lock()
	delete(p.wakers, c)
	p.mu.Unlock()
}

// wake sends a value to a channel with room for one, unless one waits there.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Directory is the nodes besides this one; *wire.Pool is one.
type Directory interface {
	// Peer returns another node, nil when it cannot be reached now. It does
	// not wait.
	Peer(node string) *wire.Peer
	// Subscribe has f called when a node can be reached again or no longer. f
	// does not block.
	Subscribe(f func(node string, up bool)) (cancel func())
}

// directory makes a Directory others.
type directory struct{ Directory }

func (d directory) find(node string) replica.Copies {
	if p := d.Peer(node); p != nil {
		return replica.On(p)
	}
	return nil
}

func (d directory) subscribe(f func(string, bool)) func() { return d.Subscribe(f) }
