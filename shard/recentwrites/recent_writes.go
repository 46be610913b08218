// Package recentwrites remembers which documents the last group commits of a copy changed.
package recentwrites

// maxGroups is how many applied groups a writer remembers the documents of.
// A request reads its documents before it queues; it waits behind few groups.
const maxGroups = 8

// Writes remembers which documents the last group commits changed, so that
// the writer can take over what a request decided on documents that are still as
// the request read them, without reading them again.
//
// Timestamps are readings of the node's clock, which counts applied groups
// (copyStates.clock). A request notes the timestamp before it reads. A group gets its
// timestamp after it has been applied. So a group with a timestamp at or before a
// request's was seen by the request; all others may not have been.
//
// It belongs to the writer goroutine.
type Writes struct {
	floor  uint64  // groups up to this timestamp are forgotten
	groups []group // oldest first
}

// group is the documents of one group. New documents often have ascending ids, so
// that the least and the greatest answer most questions.
type group struct {
	ts          uint64
	least, most string
	ids         []string
	set         map[string]struct{} // of ids; nil: not asked for yet
}

// Reset forgets everything up to a timestamp.
func (r *Writes) Reset(ts uint64) {
	r.floor = ts
	clear(r.groups)
	r.groups = r.groups[:0]
}

// Note adds an applied group.
func (r *Writes) Note(ts uint64, ids []string) {
	if len(r.groups) == maxGroups {
		r.floor = r.groups[0].ts
		copy(r.groups, r.groups[1:])
		r.groups = r.groups[:maxGroups-1]
	}
	g := group{ts: ts, ids: ids}
	for i, id := range ids {
		if i == 0 || id < g.least {
			g.least = id
		}
		g.most = max(g.most, id)
	}
	r.groups = append(r.groups, g)
}

// Unchanged reports whether a document is surely as a request read it that noted
// that timestamp before.
func (r *Writes) Unchanged(id string, ts uint64) bool {
	if ts < r.floor {
		return false
	}
	for i := len(r.groups) - 1; i >= 0 && r.groups[i].ts > ts; i-- {
		if r.groups[i].has(id) {
			return false
		}
	}
	return true
}

// fewIDs is up to how many are looked through.
const fewIDs = 16

func (g *group) has(id string) bool {
	if len(g.ids) == 0 || id < g.least || id > g.most {
		return false
	}
	if len(g.ids) <= fewIDs {
		for _, known := range g.ids {
			if known == id {
				return true
			}
		}
		return false
	}
	if g.set == nil {
		g.set = make(map[string]struct{}, len(g.ids))
		for _, known := range g.ids {
			g.set[known] = struct{}{}
		}
	}
	_, ok := g.set[id]
	return ok
}
