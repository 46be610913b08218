package events

import "testing"

func TestOwnEventsAreNone(t *testing.T) {
	for name, want := range map[string]bool{
		"shards/00000000-ffffffff/_global_changes.1763600000":  true,
		"shards/00000000-ffffffff/_global_changesx.1763600000": false,
		"shards/00000000-ffffffff/a.1763600000":                false,
		"":                                                     false,
	} {
		if got := ofGlobalChanges(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func BenchmarkUpdated(b *testing.B) {
	var q Queue
	q.open()
	for b.Loop() {
		q.Updated("shards/00000000-7fffffff/db.1763600000")
	}
}
