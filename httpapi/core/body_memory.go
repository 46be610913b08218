package core

import (
	"net/netip"

	"divan/cluster/network"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/memory"
)

// bodyFactor is how many bytes of memory a byte of a body takes: what is made of it takes
// as much again.
const bodyFactor = 2

// defaultBodyMemory applies when the amount of memory is unknown.
const defaultBodyMemory = 1 << 30

// Memory is the part that a request has taken of the memory for all requests. It counts
// towards the share of the account, or of the address of a client without one.
type Memory struct {
	hold     memory.Hold
	shared   bool  // hold is that of the account
	answer   int64 // of hold, what waits for the client
	api      *API
	response *Response // refuses
}

// owner returns whose share the request takes from. The client is known before a handler runs.
func (m *Memory) owner() memory.Name {
	if u := m.response.body.user; !u.Anonymous && u.Name != "" {
		return memory.Name{Account: u.Name}
	}
	peer := m.api.Deps.Auth.Peer(m.response.request)
	if address, err := netip.ParseAddr(peer); err == nil {
		peer = network.Of(address).String()
	}
	return memory.Name{Address: peer}
}

// try reports whether it has taken n bytes, and if not whether there can never be so much.
func (m *Memory) try(n int64) (ok, never bool) {
	if !m.shared {
		m.hold, m.shared = m.api.shares.Hold(m.owner()), true
	}
	return m.hold.Try(n)
}

// Take takes memory for n more bytes of a body, or that are made of it. The error is
// fault.RequestTooLarge when this body is larger than one may be, and fault.Unavailable
// when there are too many at the moment.
func (m *Memory) Take(n int) error {
	ok, never := m.try(int64(n) * bodyFactor)
	switch {
	case ok:
		return nil
	case never:
		return m.response.TooLarge()
	}
	h := m.response.Header()
	h["Retry-After"], h["Connection"] = []string{"1"}, []string{"close"}
	return fault.New(fault.Unavailable, "The bodies of other requests take all memory there is for them, or the share of this account. Try again.")
}

// TryTake is Take for a caller that can do without. It leaves requiredSpace bytes to what the same
// request cannot do without.
func (m *Memory) TryTake(n int) bool {
	ok, _ := m.try(int64(n)*bodyFactor + requiredSpace)
	if ok {
		m.hold.Shrink(m.hold.Held() - requiredSpace)
	}
	return ok
}

const requiredSpace = 256 << 10

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

// Hold takes memory for n bytes of an answer that is made before it is sent. They are the
// client's until it has taken them all. The error is fault.BadRequest when there can never
// be so much, and fault.Busy when others hold it at the moment.
func (m *Memory) Hold(n int) error {
	ok, never := m.try(int64(n))
	switch {
	case ok:
		m.answer += int64(n)
		return nil
	case never:
		return &fault.Error{Kind: fault.BadRequest, Code: "too_large", Reason: "The answer is too large for [chttpd] max_body_memory: ask for less at a time."}
	}
	return fault.New(fault.Busy, "Answers that were not taken yet hold all memory there is for them, or the share of this account. Try again.")
}

// Drop gives back n bytes that Hold has taken.
func (m *Memory) Drop(n int) {
	m.answer -= int64(n)
	m.hold.Shrink(m.hold.Held() - int64(n))
}

// keep is Hold for an answer that is sent as it is made when there is no memory. A buffer that
// grows takes bodyFactor times its bytes.
func (m *Memory) keep(n int) bool {
	if !m.TryTake(n) {
		return false
	}
	m.answer += int64(n)
	return true
}

// HoldInSteps returns Hold for many small pieces.
func (m *Memory) HoldInSteps() func(n int) error {
	s := memory.InSteps(m)
	return s.Add
}

// rate returns how many bytes per second the client has to take while it is waited for.
// The more of an answer is held for it, the faster it has to be; what its own body takes does
// not count.
func (m *Memory) rate(s *settings) int64 {
	if s.minAnswerRate == 0 {
		return 0
	}
	return max(s.minAnswerRate, m.answer/s.heldSeconds)
}

// EachElement is doc.EachElement for a list that a client sends: an element may have
// one byte, and size is about how many are made of it.
func (m *Memory) EachElement(list []byte, size int, fn func(value []byte) error) error {
	space := m.InSteps()
	return doc.EachElement(list, func(value []byte) error {
		if err := space(size); err != nil {
			return err
		}
		return fn(value)
	})
}

// Bytes that are made of an element.
const (
	KeySpace   = 48  // of a key or an id
	QuerySpace = 256 // of a query of several
)

// restart gives back what the handler has taken when it begins again. The text of the body stays.
func (m *Memory) restart() {
	m.answer = 0
	m.hold.Shrink(m.response.body.kept)
}

// release gives back what was taken.
func (m *Memory) release() {
	m.answer = 0
	m.hold.Release()
}

// memoryLimit is how many bytes there are for bodies.
func (a *API) memoryLimit() int64 { return a.settings(a.Deps.Config.Load()).bodyMemory }
