package cluster

import (
	"sync/atomic"
	"time"
)

const (
	// A copy elsewhere that has not answered a read within a few times of what
	// is usual, but no less than readPatience, is left to itself and another
	// one is asked.
	readPatience = 30 * time.Millisecond
	// writePatience is the same for the copy that decides an edit. It is
	// longer, because two copies that decide at the same time may decide
	// differently when different edits of one document are under way.
	writePatience = 100 * time.Millisecond
	// mostPatience bounds both, however slow the cluster usually is.
	mostPatience = 2 * time.Second
	// stallLimit is how long a stream of another node may stay silent in the
	// middle, and a sink of an attachment busy, before another copy is read
	// from, or the sink given up.
	stallLimit = 10 * time.Second
	// nudgeLimit bounds small questions to other nodes that are not worth
	// waiting for.
	nudgeLimit = 5 * time.Second
)

// latency follows how long other nodes usually take to answer.
type latency struct {
	usual atomic.Int64 // ns, smoothed; 0: not known yet
}

// note takes in how long an answer took. Answers at the same time may
// overwrite each other, which does no harm to a mean.
func (l *latency) note(took time.Duration) {
	old := l.usual.Load()
	if old == 0 {
		l.usual.Store(max(int64(took), 1))
		return
	}
	l.usual.Store(max(old+(int64(took)-old)/16, 1))
}

// patience returns how long to wait before somebody else is asked.
func (l *latency) patience(least time.Duration) time.Duration {
	return min(max(least, 4*time.Duration(l.usual.Load())), mostPatience)
}
