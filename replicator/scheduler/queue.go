package scheduler

import (
	"cmp"
	"time"
)

// Settings configures a Queue.
type Settings struct {
	MaxJobs         int           // that run
	MaxChurn        int           // that make space in one cycle
	MaxHistory      int           // events
	Interval        time.Duration // between cycles
	HealthThreshold time.Duration // a run that was longer forgives crashes
	Sharing
}

// Queue decides about jobs. Every method is told the time, which never goes back.
//
// I1: of the jobs that Fill returned no more than MaxJobs have not ended.
// I2: a job is returned by Fill once, and then again only after Ended.
// I3: a job that crashed is not returned before its pause is over.
// I4: while a job of an account without a running one is ready, and no place is about to be
// free, no account has more than one.
type Queue struct {
	jobs     map[string]*Job
	leaving  map[string]*Job // removed, and still running
	running  int             // those that are told to stop included
	stopping int
	arrivals uint64
	usage    map[string]float64 // by share: job seconds, those of long ago count less
	totals   Totals
}

// Totals count what has happened.
type Totals struct{ Adds, DuplicateAdds, Removes, Starts, Stops, Crashes uint64 }

// NewQueue returns a queue without jobs.
func NewQueue() *Queue {
	return &Queue{jobs: map[string]*Job{}, leaving: map[string]*Job{}, usage: map[string]float64{}}
}

// Add adds a job; false: there is one with its id.
func (q *Queue) Add(j *Job, now time.Time, s *Settings) bool {
	if q.jobs[j.ID] != nil {
		q.totals.DuplicateAdds++
		return false
	}
	q.totals.Adds++
	q.arrivals++
	j.queued = queued{index: q.arrivals}
	j.remember(Event{Time: now, Type: Added}, s.MaxHistory)
	q.jobs[j.ID] = j
	return true
}

// Remove forgets a job; false: it is not in the queue. One that runs has to stop,
// and until it is Ended no other one with its id starts.
func (q *Queue) Remove(j *Job) bool {
	if q.jobs[j.ID] != j {
		return false
	}
	q.forget(j)
	if j.running {
		q.leaving[j.ID] = j
		q.stop(j)
	}
	return true
}

func (q *Queue) forget(j *Job) {
	q.totals.Removes++
	delete(q.jobs, j.ID)
}

func (q *Queue) stop(j *Job) {
	if !j.stopping {
		j.stopping = true
		q.stopping++
	}
}

// Outcome is how a run ended.
type Outcome uint8

// The outcomes.
const (
	Interrupted Outcome = iota // it was told to stop
	Done
	Failed
)

// Ended is told that a run has ended. It reports whether the job is out of the
// queue because of that: it is done, or transient and failed.
func (q *Queue) Ended(j *Job, how Outcome, reason string, now time.Time, s *Settings) (out bool) {
	q.running--
	if j.stopping {
		q.stopping--
	}
	j.running, j.stopping = false, false
	q.charge(j, now)
	healthy := now.Sub(j.since) > s.HealthThreshold
	if healthy || how == Interrupted {
		j.crashes = 0
	}
	switch how {
	case Done:
	case Interrupted:
		q.totals.Stops++
		j.remember(Event{Time: now, Type: Stopped}, s.MaxHistory)
	case Failed:
		q.totals.Crashes++
		j.crashes++
		j.due = now.Add(backOff(j.crashes))
		j.remember(Event{Time: now, Type: Crashed, Reason: reason}, s.MaxHistory)
	}
	if q.leaving[j.ID] == j {
		delete(q.leaving, j.ID)
		return false
	}
	if how == Done || how == Failed && j.Transient {
		q.forget(j)
		return true
	}
	return false
}

// Fill returns the jobs that start now, at once started as far as the queue is
// concerned.
func (q *Queue) Fill(now time.Time, s *Settings) []*Job {
	free := s.MaxJobs - q.running
	if free <= 0 {
		return nil
	}
	ready := q.fairShare(now, &s.Sharing).grant(free)
	for _, j := range ready {
		j.running, j.since, j.charged = true, now, now
		j.remember(Event{Time: now, Type: Started}, s.MaxHistory)
	}
	q.running += len(ready)
	q.totals.Starts += uint64(len(ready))
	return ready
}

// before orders jobs that wait: by what their share has had, then by how long
// ago they ran; new ones ran never.
func before(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), a.since.Compare(b.since), cmp.Compare(a.index, b.index))
}

// Cycle is called every Interval. It returns the jobs that have to stop: those
// above MaxJobs, and up to MaxChurn in favour of others that wait: of accounts that have more
// than their share first, then continuous ones by turns. Each is Ended later, and Fill
// then gives its place away.
func (q *Queue) Cycle(now time.Time, s *Settings) (stop []*Job) {
	q.account(now, &s.Sharing)
	t := q.fairShare(now, &s.Sharing)
	t.grant(max(s.MaxJobs-q.running, 0) + q.stopping)
	excess := q.running - q.stopping - s.MaxJobs
	if t.next() == nil && excess <= 0 {
		return nil
	}
	w := withdrawal{fairShare: t, candidates: q.candidates()}
	for len(w.stop) < excess && w.take(func(j *Job, _ *standing) bool { return j.Continuous }) {
	}
	for len(w.stop) < s.MaxChurn {
		poor := t.next()
		if poor == nil || !w.even(poor) && !w.rotate(poor) {
			break
		}
		t.give(t.next())
	}
	q.stopAll(w.stop)
	return w.stop
}

// Next returns when the queue is to be asked again, besides after a job has come
// or ended: when a pause is over and a place is free, or when it is time for
// jobs that run to make space. Zero: not before something happens.
func (q *Queue) Next(lastCycle time.Time, s *Settings) time.Time {
	var at time.Time
	cycle := lastCycle.Add(s.Interval)
	accounts, several := q.runningOf()
	for _, j := range q.jobs {
		if j.running || q.leaving[j.ID] != nil {
			continue
		}
		t := j.due
		atOnce := several && q.stopping == 0 && accounts[j.Account] == 0 // Preempt makes space
		if q.running >= s.MaxJobs && t.Before(cycle) && !atOnce {
			t = cycle
		}
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if q.running-q.stopping > s.MaxJobs && (at.IsZero() || cycle.Before(at)) {
		at = cycle
	}
	return at
}

// runningOf counts the jobs that run by account; several: one has more than one.
func (q *Queue) runningOf() (accounts map[string]int, several bool) {
	accounts = map[string]int{}
	for _, j := range q.jobs {
		if j.running && !j.stopping {
			accounts[j.Account]++
			several = several || accounts[j.Account] > 1
		}
	}
	return accounts, several
}
