// Package bandwidth holds what a node does in the background to so many bytes per second.
package bandwidth

import (
	"context"
	"math"
	"sync"
	"time"
)

// burst is how long a transfer may run ahead of the bandwidth, so that small
// batches need no wait.
const burst = 100 * time.Millisecond

// Limit holds all transfers of one kind to a bandwidth together. Each transfer takes
// its time from the same line of time; one that comes when the line reaches
// further than the burst into the future waits. It is safe for concurrent use.
type Limit struct {
	rate func() int64

	mu struct {
		sync.Mutex
		free time.Time // when the last transfer granted is over
	}
}

// New returns a limit. rate returns the bytes per second of the moment; math.MaxInt64:
// no limit.
func New(rate func() int64) *Limit { return &Limit{rate: rate} }

// Wait returns when so many bytes may be transferred, or with the end of ctx.
func (b *Limit) Wait(ctx context.Context, bytes int) error {
	rate := b.rate()
	if rate == math.MaxInt64 || rate <= 0 {
		return ctx.Err()
	}
	delay := b.take(time.Now(), time.Duration(float64(bytes)/float64(rate)*float64(time.Second)))
	if delay <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take puts a transfer that takes so long on the line and returns how long it
// has to wait.
func (b *Limit) take(now time.Time, long time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if earliest := now.Add(-burst); b.mu.free.Before(earliest) {
		b.mu.free = earliest
	}
	b.mu.free = b.mu.free.Add(long)
	return b.mu.free.Sub(now)
}
