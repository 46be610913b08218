package storagetest

import "testing"

// SkipShort leaves a test out of short runs, which are for the race detector: a test that
// moves tens of megabytes through one goroutine, or keeps an interpreter busy, takes ten
// times as long under it and shows it nothing.
func SkipShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("large for a short run")
	}
}
