package core

import (
	"sync/atomic"

	"divan/storage/fault"
)

// bodyMemory is what the bodies of all requests may take of the memory. A body
// takes it in steps as it grows, twice its size: what is made of it takes as much
// again.
type bodyMemory struct {
	used  atomic.Int64 // bytes
	given atomic.Int64 // back since the last Reclaimable
}

const bodyFactor = 2

// defaultBodyMemory counts when nobody knows how much memory there is.
const defaultBodyMemory = 1 << 30

// takeMemory takes memory for n more bytes of a body. The error is
// fault.RequestTooLarge when this body is larger than all may be together, and
// fault.Unavailable when there are too many at the moment.
func (c *Call) takeMemory(n int) error {
	m, most := &c.API.bodies, c.set.bodyMemory
	size := int64(n) * bodyFactor
	if c.memory+size > most {
		return c.TooLarge()
	}
	if m.used.Add(size) > most {
		m.used.Add(-size)
		h := c.Response.Header()
		h["Retry-After"], h["Connection"] = []string{"1"}, []string{"close"}
		return fault.New(fault.Unavailable, "The bodies of other requests take all memory there is for them. Try again.")
	}
	c.memory += size
	return nil
}

// giveMemory gives back what the body of the call has taken.
func (c *Call) giveMemory() {
	if c.memory != 0 {
		c.API.bodies.used.Add(-c.memory)
		if c.memory >= reclaimable {
			c.API.bodies.given.Add(c.memory)
		}
		c.memory = 0
	}
}

// BodyMemory returns how many bytes the bodies of requests take.
func (a *API) BodyMemory() int64 { return a.bodies.used.Load() }

// reclaimable is how many bytes a body takes that counts for Reclaimable: room of
// smaller ones is used again at once.
const reclaimable = 8 << 20

// Reclaimable returns how many bytes of large bodies were given back since it was last
// asked: the collector does not know yet that they are not needed.
func (a *API) Reclaimable() int64 { return a.bodies.given.Swap(0) }
