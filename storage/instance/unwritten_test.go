package instance

import "testing"

// TestUnwrittenBatchOfAFlush: a flush that takes a batch before its commit comes back
// leaves nothing behind, and one that does not take it leaves it.
func TestUnwrittenBatchOfAFlush(t *testing.T) {
	pending := int64(0)
	u := &Unwritten{pending: func(by int64) { pending += by }}
	const batch = 24 << 20
	check := func(when string, want int64) {
		t.Helper()
		if got := u.Bytes(); got != want || pending != want {
			t.Errorf("%s: %d bytes unwritten, %d pending, want %d", when, got, pending, want)
		}
	}
	u.Committing(batch)
	u.flushBegins(batch)
	u.flushEnds()
	check("flushed before the commit came back", 0)
	u.Committed(batch)
	check("when it came back", 0)

	u.Committing(batch)
	u.Committed(batch)
	u.Committing(batch)
	u.flushBegins(batch + batch/20) // the first one, and what a memtable has besides
	u.flushEnds()
	u.Committed(batch)
	check("another batch was being committed", batch)
	u.flushBegins(batch)
	u.flushEnds()
	check("after its flush", 0)
}
