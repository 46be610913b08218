package cluster

import (
	"context"
	"sync"
	"time"

	"divan/cluster/config"
)

// background runs what may outlive the request that it belongs to, and bounds it.
//
// LOCKS: mu guards what is below it.
type background struct {
	config *config.Holder

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	number  uint64
	cancels map[uint64]context.CancelFunc // of what detach runs
}

// closePatience is how long Coordinator.Close waits for slower copies. Repair brings them
// what they have not taken by then.
const closePatience = 10 * time.Second

// giveUp ends what detach runs.
func (b *background) giveUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, cancel := range b.cancels {
		cancel()
	}
}

// spawn runs f on a goroutine of its own, which Close waits for; f has to end
// soon after its request does. It returns false when the coordinator is
// closing.
func (b *background) spawn(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.running.Go(f)
	return true
}

// detach runs f on a goroutine of its own that ends when [fabric]
// request_timeout is over, even if the request ends before, or some seconds
// after Close has begun. It returns false when the coordinator is closing.
func (b *background) detach(ctx context.Context, f func(context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	ctx, cancel := b.deadline(context.WithoutCancel(ctx))
	if b.cancels == nil {
		b.cancels = make(map[uint64]context.CancelFunc)
	}
	b.number++
	number := b.number
	b.cancels[number] = cancel
	b.running.Go(func() {
		f(ctx)
		cancel()
		b.mu.Lock()
		delete(b.cancels, number)
		b.mu.Unlock()
	})
	return true
}

// deadline bounds a fan-out by [fabric] request_timeout; a nearer deadline of
// the request itself stands.
func (b *background) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := b.requestTimeout()
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// requestTimeout returns [fabric] request_timeout; 0: none.
func (b *background) requestTimeout() time.Duration { return b.config.Load().Fabric.RequestTimeout }

// refuse has spawn and detach run nothing more.
func (b *background) refuse() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
}

// wait returns when all has ended that runs. The functions of detach are ended after some seconds.
func (b *background) wait() {
	late := time.AfterFunc(closePatience, b.giveUp)
	defer late.Stop()
	b.running.Wait()
}
