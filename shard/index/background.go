package index

import (
	"context"
	"slices"
	"sync"
	"time"

	"divan/shard/ring"
)

// One update in the background may take hours, or as long as a user likes. When it has had
// warmTurn the next one begins beside it, of another database, up to warmAtOnce.
const (
	warmTurn   = 2 * time.Second
	warmAtOnce = 8
)

// background updates indexes that no caller waits for, one of a database at a time.
//
// LOCKS mu before that of followers.
type background struct {
	followers *followers
	wake      chan struct{} // something waits

	mu struct {
		sync.Mutex
		warm    []*follower         // to be updated, in order; each has a user for that
		warming map[string]struct{} // instances of databases of which one is
	}
}

func newBackground(fs *followers) *background {
	b := &background{followers: fs, wake: make(chan struct{}, 1)}
	b.mu.warming = make(map[string]struct{})
	return b
}

// enqueue has an index updated, which has a user.
func (b *background) enqueue(f *follower) {
	b.mu.Lock()
	if !f.queued && b.followers.hold(f) {
		f.queued = true
		b.mu.warm = append(b.mu.warm, f)
	}
	b.mu.Unlock()
	b.poke()
}

// update updates what waits, one index after the other as long as each takes no longer than
// its turn.
func (b *background) update(ctx context.Context) {
	for ended := b.start(ctx); ended != nil; ended = b.start(ctx) {
		turn := time.NewTimer(warmTurn)
		select {
		case <-ended:
		case <-turn.C:
		}
		turn.Stop()
	}
}

// start begins the next update; nil: there is none, or none may begin before another one
// ends.
func (b *background) start(ctx context.Context) (ended <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.mu.warm, func(f *follower) bool {
		_, busy := b.mu.warming[ring.CopyTail(f.copyName)]
		return !busy
	})
	if i < 0 || len(b.mu.warming) >= warmAtOnce {
		return nil
	}
	f, end := b.mu.warm[i], make(chan struct{})
	if !b.followers.start(func() {
		defer close(end)
		f.updateAlone(ctx)
		b.ended(f)
	}) {
		return nil
	}
	b.mu.warm = slices.Delete(b.mu.warm, i, i+1)
	f.queued = false
	b.mu.warming[ring.CopyTail(f.copyName)] = struct{}{}
	return end
}

// ended takes note that an update has ended.
func (b *background) ended(f *follower) {
	b.mu.Lock()
	delete(b.mu.warming, ring.CopyTail(f.copyName))
	b.mu.Unlock()
	b.followers.leave(f)
	b.poke()
}

// giveUp forgets what waits, when followers has stopped.
func (b *background) giveUp() {
	b.mu.Lock()
	warm := b.mu.warm
	b.mu.warm = nil
	b.mu.Unlock()
	for _, f := range warm {
		b.followers.leave(f)
	}
}

// poke has Manager.Run look for what waits.
func (b *background) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
