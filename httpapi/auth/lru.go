package auth

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// lru is a bounded map that forgets what was used longest ago (I6). It is safe
// for concurrent use: keys are spread over parts with a mutex each.
type lru[K comparable, V any] struct {
	seed  maphash.Seed
	parts []lruPart[K, V]
}

type lruPart[K comparable, V any] struct {
	max int
	sync.Mutex
	entries *simplelru.LRU[K, *lruEntry[V]]
}

type lruEntry[V any] struct {
	value V
	since time.Time // ages are counted from here
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
		c.parts[i].max = max(1, limit/n)
		c.parts[i].clear()
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
	p.Lock()
	defer p.Unlock()
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
	p.Lock()
	defer p.Unlock()
	p.entries.Add(k, &lruEntry[V]{v, now})
}

// update stores what fn makes of the present value, the zero value when there
// is none younger than maxAge. The age of an entry that exists goes on.
func (c *lru[K, V]) update(k K, now time.Time, maxAge time.Duration, fn func(V) V) {
	p := c.part(k)
	p.Lock()
	defer p.Unlock()
	e := p.lookupLocked(k, now, maxAge)
	if e == nil {
		e = &lruEntry[V]{since: now}
		p.entries.Add(k, e)
	}
	e.value = fn(e.value)
}

// remove forgets k.
func (c *lru[K, V]) remove(k K) {
	p := c.part(k)
	p.Lock()
	defer p.Unlock()
	p.entries.Remove(k)
}

// clear forgets everything.
func (c *lru[K, V]) clear() {
	for i := range c.parts {
		c.parts[i].clear()
	}
}

// clear gives the memory back, too, which Purge does not.
func (p *lruPart[K, V]) clear() {
	p.Lock()
	defer p.Unlock()
	p.entries, _ = simplelru.NewLRU[K, *lruEntry[V]](p.max, nil) // it refuses what is not positive
}

// lookupLocked finds k and makes it the entry used last; an expired one is
// dropped.
func (p *lruPart[K, V]) lookupLocked(k K, now time.Time, maxAge time.Duration) *lruEntry[V] {
	e, ok := p.entries.Get(k)
	if !ok {
		return nil
	}
	if now.Sub(e.since) >= maxAge {
		p.entries.Remove(k)
		return nil
	}
	return e
}
