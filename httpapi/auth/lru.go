package auth

import (
	"hash/maphash"
	"sync"
	"time"
)

// lru is a bounded map that forgets what was used longest ago (I6). It is safe
// for concurrent use: keys are spread over parts with a mutex each.
type lru[K comparable, V any] struct {
	seed  maphash.Seed
	parts []lruPart[K, V]
}

// lruPart is one part: a map, and a ring in order of use. root.next is the
// entry used last, root.prev the one to forget first.
type lruPart[K comparable, V any] struct {
	max int
	mu  struct {
		sync.Mutex
		entries map[K]*lruEntry[K, V]
		root    lruEntry[K, V]
	}
}

type lruEntry[K comparable, V any] struct {
	prev, next *lruEntry[K, V]
	key        K
	value      V
	since      time.Time // ages are counted from here
}

// newLRU returns an empty map that holds at most limit entries, or a few fewer
// when the keys spread unevenly.
func newLRU[K comparable, V any](limit int) *lru[K, V] {
	n := 1
	if limit >= 1024 {
		n = 16
	}
	c := &lru[K, V]{seed: maphash.MakeSeed(), parts: make([]lruPart[K, V], n)}
	for i := range c.parts {
		p := &c.parts[i]
		p.max = max(1, limit/n)
		p.clear()
	}
	return c
}

func (c *lru[K, V]) part(k K) *lruPart[K, V] {
	if len(c.parts) == 1 {
		return &c.parts[0]
	}
	return &c.parts[maphash.Comparable(c.seed, k)%uint64(len(c.parts))]
}

// get returns the value of k unless it is older than maxAge. With touch the
// age starts again, which makes maxAge the longest time without use.
func (c *lru[K, V]) get(k K, now time.Time, maxAge time.Duration, touch bool) (v V, ok bool) {
	p := c.part(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.lookupLocked(k, now, maxAge)
	if e == nil {
		return v, false
	}
	if touch {
		e.since = now
	}
	return e.value, true
}

// put stores v and starts its age.
func (c *lru[K, V]) put(k K, v V, now time.Time) {
	p := c.part(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.putLocked(k, v, now)
}

// update stores what fn makes of the present value, the zero value when there
// is none younger than maxAge. The age of an entry that exists goes on.
func (c *lru[K, V]) update(k K, now time.Time, maxAge time.Duration, fn func(V) V) {
	p := c.part(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.lookupLocked(k, now, maxAge); e != nil {
		e.value = fn(e.value)
		return
	}
	var zero V
	p.putLocked(k, fn(zero), now)
}

// remove forgets k.
func (c *lru[K, V]) remove(k K) {
	p := c.part(k)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.mu.entries[k]; e != nil {
		p.dropLocked(e)
	}
}

// clear forgets everything.
func (c *lru[K, V]) clear() {
	for i := range c.parts {
		c.parts[i].clear()
	}
}

func (p *lruPart[K, V]) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.entries = make(map[K]*lruEntry[K, V])
	p.mu.root.next, p.mu.root.prev = &p.mu.root, &p.mu.root
}

// lookupLocked finds k and makes it the entry used last; an expired one is
// dropped.
func (p *lruPart[K, V]) lookupLocked(k K, now time.Time, maxAge time.Duration) *lruEntry[K, V] {
	e := p.mu.entries[k]
	if e == nil {
		return nil
	}
	if now.Sub(e.since) >= maxAge {
		p.dropLocked(e)
		return nil
	}
	if p.mu.root.next != e {
		e.unlink()
		p.frontLocked(e)
	}
	return e
}

func (p *lruPart[K, V]) putLocked(k K, v V, now time.Time) {
	e := p.mu.entries[k]
	if e == nil {
		if len(p.mu.entries) >= p.max {
			p.dropLocked(p.mu.root.prev)
		}
		e = &lruEntry[K, V]{key: k}
		p.mu.entries[k] = e
	} else {
		e.unlink()
	}
	e.value, e.since = v, now
	p.frontLocked(e)
}

func (p *lruPart[K, V]) dropLocked(e *lruEntry[K, V]) {
	e.unlink()
	delete(p.mu.entries, e.key)
}

func (p *lruPart[K, V]) frontLocked(e *lruEntry[K, V]) {
	root := &p.mu.root
	e.prev, e.next = root, root.next
	e.prev.next, e.next.prev = e, e
}

func (e *lruEntry[K, V]) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
}
