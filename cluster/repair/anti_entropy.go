package repair

import (
	"time"

	"divan/cluster/meta"
)

const (
	// antiEntropyEvery is how often every pair of copies of this node is compared, even if nothing
	// is known to be missing; a part of it is random, so that nodes do not do it together.
	antiEntropyEvery = 5 * time.Minute
	// briskRate, longRate and slowRate are the pairs looked at per second: the
	// first ones after the start of this node or the return of another one, the
	// rest of them, and otherwise. Looking at a pair at rest may mean to open
	// its stores, ten milliseconds of a processor each.
	briskRate  = 100
	briskPairs = 5000
	longRate   = 25
	slowRate   = 5
	// antiEntropyStep is how many databases are looked at in one step.
	antiEntropyStep = 1000
)

// antiEntropyPass goes through the pairs of this node in the order of their databases.
type antiEntropyPass struct {
	node  string // only pairs with that node; empty: all
	after string // the database looked at last
	begun bool
	brisk bool
	seen  int // pairs
}

// rate is the pairs per second at this point.
func (w *antiEntropyPass) rate() int {
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
func (w *antiEntropyPass) next(dbs meta.Databases, self string) (pairs []pair, more bool) {
	at := 0
	if w.begun {
		at = dbs.Index(w.after + "\x00")
	}
	w.begun = true
	for db := range dbs.Slice(at, at+antiEntropyStep) {
		w.after = db.Name
		if pairs = pairsWith(db, self, w.node); len(pairs) > 0 {
			break
		}
	}
	return pairs, dbs.Index(w.after+"\x00") < dbs.Len()
}

// antiEntropy has the passes of a node: one after the other, brisk ones first, each at its rate. It
// is pure, like schedule.
type antiEntropy struct {
	self    string
	jitter  func(n time.Duration) time.Duration
	passes  []antiEntropyPass
	allowed time.Time // when the next pairs may be looked at
	regular time.Time // when the next pass over everything begins
}

// begin asks for a pass over the pairs with a node, or over all. One that is
// under way starts over: what it has passed may have changed.
func (w *antiEntropy) begin(node string, brisk bool) {
	for i := range w.passes {
		if w.passes[i].node == node && w.passes[i].brisk == brisk {
			w.passes[i].begun, w.passes[i].after, w.passes[i].seen = false, "", 0
			return
		}
	}
	if brisk { // before the slow ones
		w.passes = append([]antiEntropyPass{{node: node, brisk: true}}, w.passes...)
		return
	}
	w.passes = append(w.passes, antiEntropyPass{node: node})
}

// next returns the pairs to look at now, and when to ask again.
func (w *antiEntropy) next(dbs meta.Databases, now time.Time) (pairs []pair, wake time.Time) {
	if !now.Before(w.regular) {
		if !w.regular.IsZero() && len(w.passes) == 0 {
			w.begin("", false) // else there is one under way that takes longer
		}
		w.regular = now.Add(antiEntropyEvery/2 + w.jitter(antiEntropyEvery))
	}
	if len(w.passes) == 0 {
		return nil, w.regular
	}
	if now.Before(w.allowed) {
		return nil, w.allowed
	}
	first := &w.passes[0]
	pairs, more := first.next(dbs, w.self)
	first.seen += len(pairs)
	perSecond := time.Duration(first.rate())
	if !more {
		w.passes = w.passes[1:]
	}
	w.allowed = now.Add(time.Second / perSecond * time.Duration(max(len(pairs), 1)))
	return pairs, w.allowed
}
