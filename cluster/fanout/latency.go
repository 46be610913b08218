package fanout

import (
	"sync/atomic"
	"time"
)

const (
	// ReadPatience is the least that a copy elsewhere is waited for: one that has
	// not answered a read within a few times of what is usual is left to itself and
	// another one is asked.
	ReadPatience = 30 * time.Millisecond
	// WritePatience is the same for the copy that decides an edit. It is
	// longer, because two copies that decide at the same time may decide
	// differently when different edits of one document are under way.
	WritePatience = 100 * time.Millisecond
	// MostPatience bounds both, however slow the cluster usually is.
	MostPatience = 2 * time.Second
	// StallLimit is how long a stream of another node may stay silent in the
	// middle, and a sink of an attachment busy, before another copy is read
	// from, or the sink given up.
	StallLimit = 10 * time.Second
	// NudgeLimit bounds small questions to other nodes that are not worth
	// waiting for.
	NudgeLimit = 5 * time.Second
)

// Latency follows how long other nodes usually take to answer.
type Latency struct {
	usual atomic.Int64 // ns, smoothed; 0: not known yet
}

// Note takes in how long an answer took. Answers at the same time may
// overwrite each other, which does no harm to a mean.
func (l *Latency) Note(took time.Duration) {
	old := l.usual.Load()
	if old == 0 {
		l.usual.Store(max(int64(took), 1))
		return
	}
	l.usual.Store(max(old+(int64(took)-old)/16, 1))
}

// Patience returns how long to wait before another copy is asked.
func (l *Latency) Patience(least time.Duration) time.Duration {
	return min(max(least, 4*time.Duration(l.usual.Load())), MostPatience)
}
