package repair

import (
	"time"

	"divan/cluster/meta"
)

const (
	// walkEvery is how often every pair of copies of this node is compared,
	// whatever is known of it; a part of it is random, so that nodes do not do
	// it together.
	walkEvery = 5 * time.Minute
	// briskRate, longRate and slowRate are the pairs looked at per second: the
	// first ones after the start of this node or the return of another one, the
	// rest of them, and otherwise. Looking at a pair at rest may mean to open
	// its stores, ten milliseconds of a processor each.
	briskRate  = 100
	briskPairs = 5000
	longRate   = 25
	slowRate   = 5
	// walkStep is how many databases are looked at in one step.
	walkStep = 1000
)

// walk goes through the pairs of this node in the order of their databases.
type walk struct {
	node  string // only pairs with that node; empty: all
	after string // the database looked at last
	begun bool
	brisk bool
	seen  int // pairs
}

// rate is the pairs per second at this point of the walk.
func (w *walk) rate() int {
	switch {
	case !w.brisk:
		return slowRate
	case w.seen <= briskPairs:
		return briskRate
	default:
		return longRate
	}
}

// next returns the pairs of the next databases and whether there are more; one
// database's pairs at a time, and none when the step led nowhere.
func (w *walk) next(dbs meta.Databases, self string) (pairs []pair, more bool) {
	at := 0
	if w.begun {
		at = dbs.Index(w.after + "\x00")
	}
	w.begun = true
	for db := range dbs.Slice(at, at+walkStep) {
		w.after = db.Name
		if pairs = pairsOf(db, self, w.node); len(pairs) > 0 {
			break
		}
	}
	return pairs, dbs.Index(w.after+"\x00") < dbs.Len()
}

// pairsOf returns the pairs of a database on a node, with one other node or
// all.
func pairsOf(db *meta.Database, self, with string) []pair {
	var out []pair
	for _, s := range db.Shards {
		if !s.On(self) {
			continue
		}
		for _, node := range s.Nodes() {
			if node != self && (with == "" || with == node) {
				out = append(out, pair{db.CopyName(s.Range), node})
			}
		}
	}
	return out
}

// walker has the walks of a node: one after the other, those that somebody
// waits for first, each at its rate. It is pure, like schedule.
type walker struct {
	self    string
	jitter  func(n time.Duration) time.Duration
	walks   []walk
	allowed time.Time // when the next pairs may be looked at
	regular time.Time // when the next walk over everything begins
}

// begin asks for a walk over the pairs with a node, or over all. One that is
// under way starts over: what it has passed may have changed.
func (w *walker) begin(node string, brisk bool) {
	for i := range w.walks {
		if w.walks[i].node == node && w.walks[i].brisk == brisk {
			w.walks[i].begun, w.walks[i].after, w.walks[i].seen = false, "", 0
			return
		}
	}
	if brisk { // before the slow ones
		w.walks = append([]walk{{node: node, brisk: true}}, w.walks...)
		return
	}
	w.walks = append(w.walks, walk{node: node})
}

// next returns the pairs to look at now, and when to ask again.
func (w *walker) next(dbs meta.Databases, now time.Time) (pairs []pair, wake time.Time) {
	if !now.Before(w.regular) {
		if !w.regular.IsZero() && len(w.walks) == 0 {
			w.begin("", false) // else there is one under way that takes longer
		}
		w.regular = now.Add(walkEvery/2 + w.jitter(walkEvery))
	}
	if len(w.walks) == 0 {
		return nil, w.regular
	}
	if now.Before(w.allowed) {
		return nil, w.allowed
	}
	first := &w.walks[0]
	pairs, more := first.next(dbs, w.self)
	first.seen += len(pairs)
	perSecond := time.Duration(first.rate())
	if !more {
		w.walks = w.walks[1:]
	}
	w.allowed = now.Add(time.Second / perSecond * time.Duration(max(len(pairs), 1)))
	return pairs, w.allowed
}
