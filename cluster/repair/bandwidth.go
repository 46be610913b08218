package repair

import (
	"context"
	"math"
	"sync"
	"time"
)

// burst is how long a push may run ahead of the bandwidth, so that small
// batches need no wait.
const burst = 100 * time.Millisecond

// bandwidth holds all pushes of a node to a bandwidth together. Each transfer takes
// its time from the same line of time; whoever comes when the line reaches
// further than the burst into the future waits.
type bandwidth struct {
	rate func() int64 // bytes per second now; math.MaxInt64: no limit

	mu struct {
		sync.Mutex
		free time.Time // when the last transfer granted is over
	}
}

// wait returns when so many bytes may be sent, or with the end of ctx.
func (b *bandwidth) wait(ctx context.Context, bytes int) error {
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
func (b *bandwidth) take(now time.Time, long time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if earliest := now.Add(-burst); b.mu.free.Before(earliest) {
		b.mu.free = earliest
	}
	b.mu.free = b.mu.free.Add(long)
	return b.mu.free.Sub(now)
}
