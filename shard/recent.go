package shard

// recentRounds is how many applied rounds a writer remembers the documents of.
// A request reads its documents before it queues; it waits behind few rounds.
const recentRounds = 8

// recent remembers which documents the last rounds changed, so that the writer
// can take over what a request decided on documents that are still as the
// request read them, without reading them again.
//
// Moments are readings of the node's clock, which counts applied rounds
// (Local.clock). A request notes the moment before it reads. A round gets its
// moment after it has been applied. So a round with a moment at or before a
// request's was seen by the request; all others may not have been.
//
// It belongs to the writer goroutine.
type recent struct {
	floor  uint64            // rounds up to this moment are forgotten
	rounds []recentRound     // oldest first
	last   map[string]uint64 // document → moment of the last round that changed it
}

type recentRound struct {
	moment uint64
	ids    []string
}

// reset forgets everything up to a moment.
func (r *recent) reset(moment uint64) {
	r.floor = moment
	r.rounds = r.rounds[:0]
	clear(r.last)
}

// note adds an applied round.
func (r *recent) note(moment uint64, ids []string) {
	if r.last == nil {
		r.last = make(map[string]uint64)
	}
	if len(r.rounds) == recentRounds {
		old := r.rounds[0]
		for _, id := range old.ids {
			if r.last[id] == old.moment {
				delete(r.last, id)
			}
		}
		r.floor = old.moment
		copy(r.rounds, r.rounds[1:])
		r.rounds = r.rounds[:recentRounds-1]
	}
	for _, id := range ids {
		r.last[id] = moment
	}
	r.rounds = append(r.rounds, recentRound{moment: moment, ids: ids})
}

// unchanged reports whether a document is surely as somebody read it who noted
// that moment before.
func (r *recent) unchanged(id string, moment uint64) bool {
	return moment >= r.floor && r.last[id] <= moment
}
