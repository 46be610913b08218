package core

import (
	"sync/atomic"

	"divan/storage/doc"
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

// A request that takes more than smallBody gets largeShare percent of the memory only,
// with all others of the kind: few large ones, whose clients take their answers as slowly
// as they may, must not keep everybody else out.
const (
	smallBody  = 1 << 20
	largeShare = 75
)

// defaultBodyMemory counts when nobody knows how much memory there is.
const defaultBodyMemory = 1 << 30

// takeMemory takes memory for n more bytes of a body. The error is
// fault.RequestTooLarge when this body is larger than all may be together, and
// fault.Unavailable when there are too many at the moment.
func (c *Call) takeMemory(n int) error {
	large, ok := c.tryMemory(n)
	switch {
	case ok:
		return nil
	case large:
		return c.TooLarge()
	}
	h := c.Response.Header()
	h["Retry-After"], h["Connection"] = []string{"1"}, []string{"close"}
	return fault.New(fault.Unavailable, "The bodies of other requests take all memory there is for them. Try again.")
}

// tryMemory reports whether it has taken the memory, and if not whether there can
// never be so much.
func (c *Call) tryMemory(n int) (large, ok bool) {
	m, most := &c.API.bodies, c.set.bodyMemory
	size := int64(n) * bodyFactor
	if c.memory+size > smallBody {
		most -= most / 100 * (100 - largeShare)
	}
	if c.memory+size > most {
		return true, false
	}
	for {
		used := m.used.Load()
		if used > most-size {
			return false, false
		}
		if m.used.CompareAndSwap(used, used+size) {
			c.memory += size
			return false, true
		}
	}
}

// Room takes memory for so many bytes that are made of a body, beside its text.
func (c *Call) Room(n int) error { return c.takeMemory(n) }

// HasRoom is Room for who can do without.
func (c *Call) HasRoom(n int) bool {
	_, ok := c.tryMemory(n)
	return ok
}

// roomStep is how many bytes RoomInSteps gathers. Small requests take nothing.
const roomStep = 16 << 10

// RoomInSteps returns Room for many small pieces.
func (c *Call) RoomInSteps() func(n int) error {
	left := roomStep
	return func(n int) error {
		if left -= n; left >= 0 {
			return nil
		}
		n, left = roomStep-left, roomStep
		return c.takeMemory(n)
	}
}

// EachElement is doc.EachElement for a list that a client sends: an element may have
// one byte, and size is about how many are made of it.
func (c *Call) EachElement(list []byte, size int, fn func(value []byte) error) error {
	room := c.RoomInSteps()
	return doc.EachElement(list, func(value []byte) error {
		if err := room(size); err != nil {
			return err
		}
		return fn(value)
	})
}

// Bytes that are made of an element.
const (
	KeyRoom   = 48  // of a key or an id
	QueryRoom = 256 // of a query of several
)

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
