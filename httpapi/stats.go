package httpapi

import (
	"sync/atomic"
	"time"
)

// counter is a number that only grows.
type counter struct{ n atomic.Uint64 }

// Inc adds one.
func (c *counter) Inc() { c.n.Add(1) }

// statistics are the numbers that requests leave behind.
type statistics struct {
	panics counter
}

func newStatistics() *statistics { return &statistics{} }

// request counts a finished request.
func (s *statistics) request(_ *call, _ time.Duration) {}
