package clone

import (
	"context"
	"runtime"
	"time"

	"divan/storage/pause"
)

const (
	// paceBytes is how much is copied before the limit of bandwidth is asked, about.
	paceBytes = 256 << 10
	// contended is how long a yield takes when others wait for the processor; a yield
	// that no other goroutine uses takes less than a microsecond.
	contended = 50 * time.Microsecond
	// shortest is how long a rest is at least: a timer takes that much.
	shortest = time.Millisecond
)

// pace holds a Run to what clients leave. After each slice of its work, some tenths of a
// millisecond, it lets all others have the processor, instead of after the ten
// milliseconds that the scheduler would grant it. While there are others it is away as
// long as it worked, like a build of an index in the background.
type pace struct {
	limit func(ctx context.Context, bytes int) error
	bytes int
	since time.Time     // when it began to work; zero: not yet
	owed  time.Duration // that it has still to be away
}

// wait is called after each slice, with the bytes that it has copied.
func (p *pace) wait(ctx context.Context, bytes int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := p.yield(ctx); err != nil {
		return context.Cause(ctx)
	}
	if p.bytes += bytes; p.bytes >= paceBytes {
		n := p.bytes
		p.bytes = 0
		if err := p.limit(ctx, n); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
	}
	p.since = time.Now()
	return nil
}

// yield lets others have the processor.
func (p *pace) yield(ctx context.Context) error {
	now := time.Now()
	worked := now.Sub(p.since)
	if p.since.IsZero() {
		worked = 0
	}
	runtime.Gosched()
	waited := time.Since(now)
	if waited < contended {
		p.owed = 0
		return nil
	}
	if p.owed = max(0, p.owed+worked-waited); p.owed < shortest {
		return nil
	}
	rest := p.owed
	p.owed = 0
	return pause.For(ctx, rest)
}
