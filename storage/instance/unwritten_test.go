package instance

import "testing"

// TestUnwrittenBatchOfAFlush: a flush that takes a batch before its commit comes back
// leaves nothing behind, and one that does not take it leaves it.
func TestUnwrittenBatchOfAFlush(t *testing.T) {
	pending := int64(0)
	i := &Instance{shared: &Shared{Pending: func(by int64) { pending += by }}}
	const batch = 24 << 20
	check := func(when string, want int64) {
		t.Helper()
		if got := i.Unwritten(); got != want || pending != want {
			t.Errorf("%s: %d bytes unwritten, %d pending, want %d", when, got, pending, want)
		}
	}
	i.Committing(batch)
	i.flushBegins(batch)
	i.flushEnds()
	check("flushed before the commit came back", 0)
	i.Committed(batch)
	check("when it came back", 0)

	i.Committing(batch)
	i.Committed(batch)
	i.Committing(batch)
	i.flushBegins(batch + batch/20) // the first one, and what a memtable has besides
	i.flushEnds()
	i.Committed(batch)
	check("another batch was being committed", batch)
	i.flushBegins(batch)
	i.flushEnds()
	check("after its flush", 0)
}
