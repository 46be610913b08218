package scheduler

import "time"

// The pause after a crash: firstPause after the first one in a row, each time
// twice as long, maxDoublings times.
const (
	firstPause   = 30 * time.Second
	maxDoublings = 10
)

// backOff returns the pause after as many crashes in a row.
func backOff(crashes int) time.Duration {
	return firstPause << min(max(crashes-1, 0), maxDoublings)
}
