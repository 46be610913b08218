package events

import (
	"slices"
	"time"
)

// schedule decides when an event is written. That a database was made or deleted
// is urgent: it is written, with all that waits, when events have been gathered
// for eventDelay. An update waits as long, but for one database there is only
// one document in writeDelay, however often it changes.
//
// It belongs to one goroutine and looks at no clock.
type schedule struct {
	eventDelay, writeDelay time.Duration

	waiting []string             // ids of documents, as they are to be written
	due     map[string]time.Time // of those that wait
	first   time.Time            // the earliest of them; zero: nothing waits
	hurry   time.Time            // when all that waits is due; zero: no need
	written map[string]time.Time // updates: when last; forgotten after writeDelay
}

func newSchedule() *schedule {
	return &schedule{due: map[string]time.Time{}, written: map[string]time.Time{}}
}

// delays sets how long events are gathered, and the least time between two
// updates of one database.
func (a *schedule) delays(event, write time.Duration) { a.eventDelay, a.writeDelay = event, write }

// urgent notes that a database was made or deleted. What is told last is
// written last, so that the end of the feed is true.
func (a *schedule) urgent(id string, now time.Time) {
	if _, waits := a.due[id]; waits {
		a.waiting = slices.DeleteFunc(a.waiting, func(other string) bool { return other == id })
		delete(a.due, id)
	}
	if !a.add(id, now.Add(a.eventDelay)) {
		return
	}
	if a.hurry.IsZero() {
		a.hurry = now.Add(a.eventDelay)
	}
}

// update notes that documents of a database have changed.
func (a *schedule) update(id string, now time.Time) {
	if _, waits := a.due[id]; waits {
		return
	}
	due := now.Add(a.eventDelay)
	if last, ok := a.written[id]; ok && last.Add(a.writeDelay).After(due) {
		due = last.Add(a.writeDelay)
	}
	a.add(id, a.round(due))
}

// round moves a time up, so that what is due at nearly the same time is written
// at once.
func (a *schedule) round(due time.Time) time.Time {
	step := max(a.eventDelay, time.Millisecond)
	if down := due.Truncate(step); down.Before(due) {
		return down.Add(step)
	}
	return due
}

// add returns false when there is no space.
func (a *schedule) add(id string, due time.Time) bool {
	if len(a.waiting) >= maxWaiting {
		return false
	}
	a.waiting = append(a.waiting, id)
	a.due[id] = due
	if a.first.IsZero() || due.Before(a.first) {
		a.first = due
	}
	return true
}

// next returns when something is due; false when nothing waits.
func (a *schedule) next() (time.Time, bool) {
	if !a.hurry.IsZero() && a.hurry.Before(a.first) {
		return a.hurry, true
	}
	return a.first, !a.first.IsZero()
}

// take returns the ids that are due, in the order they are to be written in.
func (a *schedule) take(now time.Time) []string {
	for id, last := range a.written {
		if now.Sub(last) > a.writeDelay {
			delete(a.written, id)
		}
	}
	all := !a.hurry.IsZero() && !a.hurry.After(now)
	var out []string
	a.first = time.Time{}
	a.waiting = slices.DeleteFunc(a.waiting, func(id string) bool {
		if due := a.due[id]; !all && due.After(now) {
			if a.first.IsZero() || due.Before(a.first) {
				a.first = due
			}
			return false
		}
		out = append(out, id)
		delete(a.due, id)
		if isUpdate(id) {
			a.written[id] = now
		}
		return true
	})
	if all {
		a.hurry = time.Time{}
	}
	return out
}

// again puts back what could not be written.
func (a *schedule) again(ids []string, due time.Time) {
	for _, id := range ids {
		if _, waits := a.due[id]; !waits {
			a.add(id, due)
		}
	}
}

// clear forgets everything.
func (a *schedule) clear() {
	a.waiting, a.first, a.hurry = nil, time.Time{}, time.Time{}
	clear(a.due)
	clear(a.written)
}

func isUpdate(id string) bool { return len(id) > 0 && id[0] == UpdatedPrefix[0] }
