package conns

import (
	"errors"
	"time"
)

// ErrTrickle ends a connection whose client takes its answer too slowly.
var ErrTrickle = errors.New("the client takes its answer too slowly")

// pace is how fast a client takes what is sent to it. Only time that writes have waited
// for the client counts: a feed that has nothing to send says nothing about its client.
type pace struct {
	waited time.Duration
	taken  int64 // bytes meanwhile
}

// atOnce is the longest that a write takes when the socket has space for it.
const atOnce = 10 * time.Millisecond

// tooSlow counts a write of n bytes, and reports whether the client took less than rate
// bytes per second over the last readerPatience of waiting.
func (p *pace) tooSlow(n int, took time.Duration, rate int64) bool {
	if p.waited == 0 && took < atOnce {
		return false
	}
	if took >= atOnce { // the client was waited for
		p.waited += took
	}
	p.taken += int64(n)
	if p.waited < readerPatience {
		return false
	}
	slow := float64(p.taken) < float64(rate)*p.waited.Seconds()
	*p = pace{}
	return slow
}
