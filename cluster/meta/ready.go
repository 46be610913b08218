package meta

import "sync"

// readiness is whether the state is known.
type readiness struct {
	known chan struct{} // closed when it is for the first time
	once  sync.Once
}

func newReadiness() *readiness { return &readiness{known: make(chan struct{})} }

func (r *readiness) set() { r.once.Do(func() { close(r.known) }) }

func (r *readiness) is() bool {
	select {
	case <-r.known:
		return true
	default:
		return false
	}
}
