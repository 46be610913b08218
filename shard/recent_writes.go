package shard

// recentGroups is how many applied groups a writer remembers the documents of.
// A request reads its documents before it queues; it waits behind few groups.
const recentGroups = 8

// recentWrites remembers which documents the last group commits changed, so that
// the writer can take over what a request decided on documents that are still as
// the request read them, without reading them again.
//
// Timestamps are readings of the node's clock, which counts applied groups
// (copyStates.clock). A request notes the timestamp before it reads. A group gets its
// timestamp after it has been applied. So a group with a timestamp at or before a
// request's was seen by the request; all others may not have been.
//
// It belongs to the writer goroutine.
type recentWrites struct {
	floor  uint64            // groups up to this timestamp are forgotten
	groups []recentGroup     // oldest first
	last   map[string]uint64 // document → timestamp of the last group that changed it
}

type recentGroup struct {
	ts  uint64
	ids []string
}

// reset forgets everything up to a timestamp.
func (r *recentWrites) reset(ts uint64) {
	r.floor = ts
	r.groups = r.groups[:0]
	clear(r.last)
}

// note adds an applied group.
func (r *recentWrites) note(ts uint64, ids []string) {
	if r.last == nil {
		r.last = make(map[string]uint64)
	}
	if len(r.groups) == recentGroups {
		old := r.groups[0]
		for _, id := range old.ids {
			if r.last[id] == old.ts {
				delete(r.last, id)
			}
		}
		r.floor = old.ts
		copy(r.groups, r.groups[1:])
		r.groups = r.groups[:recentGroups-1]
	}
	for _, id := range ids {
		r.last[id] = ts
	}
	r.groups = append(r.groups, recentGroup{ts: ts, ids: ids})
}

// unchanged reports whether a document is surely as somebody read it who noted
// that timestamp before.
func (r *recentWrites) unchanged(id string, ts uint64) bool {
	return ts >= r.floor && r.last[id] <= ts
}
