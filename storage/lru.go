package storage

import (
	"container/list"
	"time"
)

// lru decides which stores are closed for lack of space: it has the entries without pins, and counts
// what is open. Those with a Pebble instance are counted, as each has files and memtables, and
// small ones are weighed. It is guarded by storeCache.mu.
type lru struct {
	env    *environment
	unused list.List // entries without pins, the longest unused in front
	open   int       // entries that hold a Pebble instance
	// the same of small stores, and what they weigh
	unusedSmall list.List
	openSmall   int
	smallBytes  int64
	shrunk      time.Time // when memtables were too large the last time
}

// maxSmallOpen is the largest total weight, in bytes, of the small stores that stay open while
// they are not in use.
const maxSmallOpen = 64 << 20

// memoryPause is how long the memtables of all stores may be too large until unused
// stores are looked for once more.
const memoryPause = 100 * time.Millisecond

// add notes that an entry has lost its last pin.
func (l *lru) add(en *entry, weight int64) {
	en.since = time.Now()
	en.in = &l.unused
	if weight > 0 {
		en.in = &l.unusedSmall
	}
	en.unused = en.in.PushBack(en)
}

// count notes that a store holds a Pebble instance, or, with a weight, the view of a small one from
// now on.
func (l *lru) count(s *handle, weight int64) {
	l.uncount(s)
	s.counted, s.weight = true, weight
	if weight == 0 {
		l.open++
	} else {
		l.smallBytes += weight
		l.openSmall++
	}
}

// uncount notes that a store holds neither any more.
func (l *lru) uncount(s *handle) {
	switch {
	case !s.counted:
	case s.weight == 0:
		l.open--
	default:
		l.smallBytes -= s.weight
		l.openSmall--
	}
	s.counted, s.weight = false, 0
}

// tooMany reports whether more stay open than may.
func (l *lru) tooMany() bool {
	return l.open > l.env.o.MaxOpen || l.smallBytes > maxSmallOpen
}

// overMemory reports whether the memtables of all stores are too large, seldom
// enough for a walk over the unused ones.
func (l *lru) overMemory() bool {
	if l.env.shared.Memory.Surplus() == 0 || time.Since(l.shrunk) < memoryPause {
		return false
	}
	l.shrunk = time.Now()
	return true
}

// takeExcess takes the longest unused stores while too many are open, those with large
// memtables while all have too much, and small ones while all weigh too much. They are
// busy then, to be closed.
func (l *lru) takeExcess() (victims []*entry) {
	excess, surplus := l.open-l.env.o.MaxOpen, l.env.shared.Memory.Surplus()
	for el := l.unused.Front(); el != nil && (excess > 0 || surplus > 0); {
		en := el.Value.(*entry)
		el = el.Next()
		inst := en.store.base().inst
		gives := inst.MemtableSurplus()
		// Closing waits for a running compaction; another store will do.
		if inst.Busy() || (excess <= 0 && gives == 0) || en.name == SmallDir {
			continue
		}
		victims = append(victims, en.take())
		excess--
		surplus -= gives
	}
	for over := l.smallBytes - maxSmallOpen; over > 0 && l.unusedSmall.Len() > 0; {
		en := l.unusedSmall.Front().Value.(*entry).take()
		victims = append(victims, en)
		over -= en.store.base().weight
	}
	return victims
}

// takeIdle takes the stores that were unused for so long, as takeExcess does.
func (l *lru) takeIdle(idle time.Duration) (out []*entry) {
	for _, unused := range []*list.List{&l.unused, &l.unusedSmall} {
		for el := unused.Front(); el != nil; el = unused.Front() {
			en := el.Value.(*entry)
			if time.Since(en.since) < idle {
				break
			}
			out = append(out, en.take())
		}
	}
	return out
}
