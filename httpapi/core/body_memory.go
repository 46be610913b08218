package core

import (
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/memory"
)

// bodyFactor is how many bytes of memory a byte of a body takes: what is made of it takes
// as much again.
const bodyFactor = 2

// defaultBodyMemory counts when nobody knows how much memory there is.
const defaultBodyMemory = 1 << 30

// Memory is what a request has of the memory that there is for the bodies of all.
type Memory struct {
	claim    memory.Claim
	budget   *memory.Budget
	response *Response // refuses
}

// Take takes memory for n more bytes of a body, or that are made of it. The error is
// fault.RequestTooLarge when this body is larger than all may be together, and
// fault.Unavailable when there are too many at the moment.
func (m *Memory) Take(n int) error {
	large, ok := m.try(n)
	switch {
	case ok:
		return nil
	case large:
		return m.response.TooLarge()
	}
	h := m.response.Header()
	h["Retry-After"], h["Connection"] = []string{"1"}, []string{"close"}
	return fault.New(fault.Unavailable, "The bodies of other requests take all memory there is for them. Try again.")
}

// try reports whether it has taken the memory, and if not whether there can
// never be so much.
func (m *Memory) try(n int) (large, ok bool) {
	ok, large = m.claim.Take(m.budget, int64(n)*bodyFactor)
	return large, ok
}

// TryTake is Take for who can do without.
func (m *Memory) TryTake(n int) bool {
	_, ok := m.try(n)
	return ok
}

// memoryStep is how many bytes InSteps gathers. Small requests take nothing.
const memoryStep = 16 << 10

// InSteps returns Take for many small pieces.
func (m *Memory) InSteps() func(n int) error {
	left := memoryStep
	return func(n int) error {
		if left -= n; left >= 0 {
			return nil
		}
		n, left = memoryStep-left, memoryStep
		return m.Take(n)
	}
}

// EachElement is doc.EachElement for a list that a client sends: an element may have
// one byte, and size is about how many are made of it.
func (m *Memory) EachElement(list []byte, size int, fn func(value []byte) error) error {
	room := m.InSteps()
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

// release gives back what was taken.
func (m *Memory) release() { m.claim.Release(m.budget) }

// memoryLimit is how many bytes there are for bodies.
func (a *API) memoryLimit() int64 { return a.settings(a.Deps.Config.Load()).bodyMemory }
