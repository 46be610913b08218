package core

import (
	"divan/storage/doc"
	"divan/storage/fault"
)

// bodyFactor is how many bytes of memory a byte of a body takes: what is made of it takes
// as much again.
const bodyFactor = 2

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
	ok, large = c.memory.Take(c.API.Memory, int64(n)*bodyFactor)
	return large, ok
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
func (c *Call) giveMemory() { c.memory.Release(c.API.Memory) }

// memoryLimit is how many bytes there are for bodies.
func (a *API) memoryLimit() int64 { return a.settings(a.Deps.Config.Load()).bodyMemory }
