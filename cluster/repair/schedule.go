package repair

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// pair is a copy of this node and another copy that holds some of the same documents.
type pair struct {
	copy, node string
	to         string // name of the other copy; empty: the same, that of another node
}

// target returns the name of the copy that is pushed to.
func (p pair) target() string {
	if p.to == "" {
		return p.copy
	}
	return p.to
}

const (
	// maxPairs bounds what is remembered about pairs that have something to do.
	// What does not fit is found again by the next pass over all copies.
	maxPairs = 100_000
	// firstPause and lastPause bound the time until a failed push is tried
	// again; it doubles from one to the other.
	firstPause = time.Second
	lastPause  = time.Minute
	// awayPause is how often a push is tried to a node that is away. Its return starts the push at
	// once; this is for a return that went unnoticed.
	awayPause = 30 * time.Second
)

// schedule decides which pushes run when. It is pure: it is told what happened
// and when, and says what to start. Nothing in it survives a restart of the
// node, and nothing has to: what a pair misses is seen from its checkpoint.
type schedule struct {
	delay  time.Duration // from an update to the push
	jitter func(n time.Duration) time.Duration
	peers  func(copy string) []pair // those of a copy of this node

	fresh   []update            // updated copies, the oldest first
	updated map[string]struct{} // those of fresh
	items   map[pair]*item
	queue   itemQueue // items that do not run, by the time they are due
	running int
	busy    map[string]int // of running, by node
}

// update is a copy that changed, and when its pushes are due.
type update struct {
	copy string
	due  time.Time
}

// item is a pair with something to do.
type item struct {
	pair
	due      time.Time
	index    int // in the queue; -1: running
	again    bool
	next     time.Time // when again is due
	hurried  bool      // while it ran: if it fails, its pause is not waited out
	fails    int
	away     bool   // the last try did not reach the node
	behind   uint64 // sequences of the source that the target did not have at the last look
	begun    time.Time
	locals   uint64 // id of the copy that has got the local documents
	drained  fence  // for which the writes of before have ended; see role
	progress *progress
}

func newSchedule(delay time.Duration, peers func(copy string) []pair) *schedule {
	return &schedule{
		delay: delay, peers: peers, jitter: func(n time.Duration) time.Duration { return rand.N(n) },
		updated: make(map[string]struct{}), items: make(map[pair]*item), busy: make(map[string]int),
	}
}

// update notes that a copy of this node has changed. The pushes are due after
// the delay, and take everything with them that is there by then. It reports
// whether that is news.
func (s *schedule) update(copy string, now time.Time) bool {
	if _, ok := s.updated[copy]; ok {
		return false
	}
	if len(s.fresh) >= maxPairs {
		return false
	}
	s.updated[copy] = struct{}{}
	s.fresh = append(s.fresh, update{copy: copy, due: now.Add(s.delay)})
	return true
}

// want asks for a push at a time; an earlier one that was asked for stands. A
// pair that keeps failing waits out its pause all the same.
func (s *schedule) want(p pair, at time.Time) *item {
	it := s.items[p]
	switch {
	case it == nil && len(s.items) >= maxPairs:
		return nil
	case it == nil:
		it = &item{pair: p, due: at, progress: &progress{}}
		s.items[p] = it
		heap.Push(&s.queue, it)
	case it.index < 0:
		if !it.again || at.Before(it.next) {
			it.again, it.next = true, at
		}
	case it.fails == 0 && at.Before(it.due):
		it.due = at
		heap.Fix(&s.queue, it.index)
	}
	return it
}

// hurry makes a pair due that waits out its pause, or will: what runs may have met
// the state of before already.
func (s *schedule) hurry(it *item, now time.Time) {
	switch {
	case it.index < 0:
		it.hurried = true
	case now.Before(it.due):
		it.due = now
		heap.Fix(&s.queue, it.index)
	}
}

// hint is want for a target that was found to miss something.
func (s *schedule) hint(p pair, now time.Time) { s.want(p, now) }

// sync is want for a round that an operator asks for, or a copy that is filled: no pause is waited
// out. It is one try: if that fails too, the pause after it is as long as if it had come by itself.
func (s *schedule) sync(p pair, now time.Time) {
	if it := s.want(p, now); it != nil {
		s.hurry(it, now)
	}
}

// up notes that a node can be reached again: what waits for it is due now.
func (s *schedule) up(node string, now time.Time) {
	for _, it := range s.items {
		if it.node != node {
			continue
		}
		it.away, it.fails = false, 0
		s.hurry(it, now)
	}
}

// full reports whether there is more to do already than can be done now.
func (s *schedule) full(now time.Time, limit int) bool {
	return s.running >= limit && len(s.queue) > 0 && !s.queue[0].due.After(now)
}

// start returns the pushes to start now, each to be ended by done; and when to
// ask again at the latest, zero for never. At most limit run together, and to
// one node fewer than that, unless that is none: a node that is slow does not
// keep the others from what they miss.
func (s *schedule) start(now time.Time, limit int) (begin []*item, wake time.Time) {
	for len(s.fresh) > 0 && !s.fresh[0].due.After(now) {
		u := s.fresh[0]
		s.fresh[0] = update{}
		s.fresh = s.fresh[1:]
		delete(s.updated, u.copy)
		for _, p := range s.peers(u.copy) {
			s.want(p, now)
		}
	}
	toOne := max(1, limit-limit/4)
	var later []*item // due, but their nodes are busy
	for len(s.queue) > 0 && s.running < limit && len(later) < maxLater && !s.queue[0].due.After(now) {
		it := heap.Pop(&s.queue).(*item)
		if s.busy[it.node] >= toOne {
			later = append(later, it)
			continue
		}
		it.begun = now
		s.running++
		s.busy[it.node]++
		begin = append(begin, it)
	}
	if len(s.fresh) > 0 {
		wake = s.fresh[0].due
	}
	// For what waits for a push to end, that end is the time to ask again.
	if len(s.queue) > 0 && s.running < limit && len(later) < maxLater && (wake.IsZero() || s.queue[0].due.Before(wake)) {
		wake = s.queue[0].due
	}
	for _, it := range later {
		heap.Push(&s.queue, it)
	}
	return begin, wake
}

// maxLater bounds the look for work for other nodes behind that for a busy one.
const maxLater = 1000

// fence is a copy that joins or leaves, and the generation of the full copies that this node has
// heard of: a push tells both, so that what this node let in before has to have ended.
type fence struct{ of, full uint64 }

// ending is how a push ended.
type ending int

const (
	caughtUp ending = iota // the target has everything
	turnOver               // there is more to push
	vanished               // the source is gone: nothing is left to do
	failed                 // try again later
	nodeAway               // failed because the node cannot be reached
)

// done notes the end of a push.
func (s *schedule) done(it *item, how ending, now time.Time) {
	s.running--
	if s.busy[it.node]--; s.busy[it.node] == 0 {
		delete(s.busy, it.node)
	}
	it.away = how == nodeAway
	hurried := it.hurried
	it.hurried = false
	switch how {
	case caughtUp:
		it.fails = 0
		if !it.again {
			delete(s.items, it.pair)
			return
		}
		it.due = it.next
	case turnOver:
		it.fails = 0
		it.due = now
	case vanished:
		delete(s.items, it.pair)
		return
	case failed:
		it.due = now.Add(s.pause(it.fails))
		it.fails++
	case nodeAway:
		it.due = now.Add(awayPause/2 + s.jitter(awayPause/2))
		it.fails++
	}
	if hurried {
		it.due = now
	}
	it.again = false
	heap.Push(&s.queue, it)
}

// pause is how long a push that has failed so often before waits.
func (s *schedule) pause(fails int) time.Duration {
	d := min(firstPause<<min(fails, 10), lastPause)
	return d/2 + s.jitter(d/2)
}

// itemQueue is a heap of items by the time they are due.
type itemQueue []*item

// Len implements heap.Interface.
func (q itemQueue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q itemQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap implements heap.Interface.
func (q itemQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *itemQueue) Push(x any) {
	it := x.(*item)
	it.index = len(*q)
	*q = append(*q, it)
}

// Pop implements heap.Interface.
func (q *itemQueue) Pop() any {
	old := *q
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	it.index = -1
	return it
}
