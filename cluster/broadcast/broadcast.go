// Package broadcast tells any number of waiting goroutines that something happened.
package broadcast

import "sync"

// Broadcast tells any number of waiting goroutines that something happened.
type Broadcast struct {
	mu sync.Mutex
	ch chan struct{}
}

// Next returns a channel that is closed when Tell is called the next time.
func (n *Broadcast) Next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

// Tell closes the channels that Next has returned.
func (n *Broadcast) Tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}
