package remote

import (
	"sync"
	"time"
)

// How long requests to an overloaded host wait: slowFirst at first, growing
// by slowFactor up to slowMost with each refusal. Refusals closer together than
// slowWindow come from requests that were under way together and count once.
const (
	slowFirst  = 20 * time.Millisecond
	slowFactor = 1.2
	slowMost   = 25 * time.Second
	slowWindow = 80 * time.Millisecond
	// slowEnough is how long a request waits for an overloaded host in all.
	slowEnough = 250 * time.Second
)

// limiter says how long requests to a host wait that has answered 429.
type limiter struct {
	mu struct {
		sync.Mutex
		delay time.Duration
		last  time.Time // of the last change
	}
}

// delay is how long a request waits now.
func (l *limiter) delay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.delay
}

// refused makes requests wait longer.
func (l *limiter) refused(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.delay > 0 && now.Sub(l.mu.last) < slowWindow {
		return
	}
	l.mu.delay = min(max(slowFirst, time.Duration(float64(l.mu.delay)*slowFactor)), slowMost)
	l.mu.last = now
}

// taken makes requests wait less, and reports whether they wait no more.
func (l *limiter) taken(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.mu.last) < slowWindow {
		return false
	}
	l.mu.delay = time.Duration(float64(l.mu.delay) / slowFactor)
	l.mu.last = now
	return l.mu.delay < slowFirst
}
