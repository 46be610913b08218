package script

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"divan/storage/fault"
)

// CallCount is a number of calls since the start, and the microseconds they took.
type CallCount struct{ Count, Micros uint64 }

// CallStats are the calls of an Engine by what is called.
type CallStats struct {
	Map      CallCount // of all map functions of an index, one document each
	Reduce   CallCount
	Filter   CallCount
	Validate CallCount
	Other    CallCount // shows, lists, updates and rewrites
	Emits    uint64    // rows of map functions
	Refusals uint64    // by validation functions: forbidden and unauthorized, no failures
}

// callCounter counts the calls of one kind.
type callCounter struct{ count, micros atomic.Uint64 }

// ended counts a call that began at a moment, and returns how long it took.
func (c *callCounter) ended(began time.Time) time.Duration {
	took := time.Since(began)
	c.count.Add(1)
	c.micros.Add(uint64(max(took.Microseconds(), 0)))
	return took
}

func (c *callCounter) calls() CallCount { return CallCount{c.count.Load(), c.micros.Load()} }

// callCounters count the calls of an Engine.
type callCounters struct {
	maps, reduces, filters, validations, others callCounter

	emits, refusals atomic.Uint64
	watch           atomic.Pointer[func(took time.Duration)] // of validations
}

// WatchValidations has f told how long each call of a validation function took.
func (e *Engine) WatchValidations(f func(took time.Duration)) { e.called.watch.Store(&f) }

func (c *callCounters) stats() CallStats {
	return CallStats{
		Map: c.maps.calls(), Reduce: c.reduces.calls(), Filter: c.filters.calls(), Validate: c.validations.calls(),
		Other: c.others.calls(), Emits: c.emits.Load(), Refusals: c.refusals.Load(),
	}
}

// ended counts a call of a runner of the sandbox.
func (c *callCounters) ended(runner string, began time.Time) {
	switch {
	case runner == "runValidate":
		took := c.validations.ended(began)
		if watch := c.watch.Load(); watch != nil {
			(*watch)(took)
		}
	case strings.HasPrefix(runner, "runFilter"):
		c.filters.ended(began)
	default:
		c.others.ended(began)
	}
}

// refused counts what a validation function said, if it refused.
func (c *callCounters) refused(ctx context.Context, err error) {
	if ctx.Err() == nil && (fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Unauthorized)) {
		c.refusals.Add(1)
	}
}
