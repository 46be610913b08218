// Package peers is the other nodes as a coordinator sees them.
package peers

import (
	"sync"
	"sync/atomic"

	"divan/cluster/replica"
	"divan/cluster/wire"
)

// Others is the nodes besides this one.
type Others interface {
	// Find returns the copies of a node; nil when it cannot be reached now.
	Find(node string) replica.Copies
	// Subscribe has f called when a node comes or goes, until cancel is.
	Subscribe(f func(node string, up bool)) (cancel func())
}

// Alone implements Others for a node that stands alone.
type Alone struct{}

// Find implements Others.
func (Alone) Find(string) replica.Copies { return nil }

// Subscribe implements Others.
func (Alone) Subscribe(func(string, bool)) (stop func()) { return func() {} }

// Presence counts the comings and goings of nodes, so that what was worked out
// from them is known to be out of date, and wakes those that wait for news of
// a copy elsewhere.
//
// LOCKS: mu guards the map only.
type Presence struct {
	epoch  atomic.Uint64
	mu     sync.Mutex
	wakers map[chan struct{}]struct{}
}

// Epoch returns the number of comings and goings.
func (p *Presence) Epoch() uint64 { return p.epoch.Load() }

// Changed tells that a node has come or gone.
func (p *Presence) Changed(string, bool) {
	p.epoch.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.wakers {
		Wake(c)
	}
}

// Tell has a value sent to c, which has space for one, when a node comes or
// goes, until Forget.
func (p *Presence) Tell(c chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wakers == nil {
		p.wakers = make(map[chan struct{}]struct{})
	}
	p.wakers[c] = struct{}{}
}

// Forget ends Tell.
func (p *Presence) Forget(c chan struct{}) {
	p.mu.Lock()
	delete(p.wakers, c)
	p.mu.Unlock()
}

// Wake sends a value to a channel with space for one, unless one waits there.
func Wake(c chan struct{}) {
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

// Of returns the nodes of a directory.
func Of(d Directory) Others { return directory{d} }

type directory struct{ Directory }

// Find implements Others.
func (d directory) Find(node string) replica.Copies {
	if p := d.Peer(node); p != nil {
		return replica.On(p)
	}
	return nil
}
