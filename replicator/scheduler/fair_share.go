package scheduler

import (
	"cmp"
	"slices"
	"time"
)

// standing is the state of an account at a moment.
type standing struct {
	running int     // jobs, but for those that are told to stop
	weight  float64 // how many times the places of others it may have
	ready   []*Job  // that wait for nothing but a place, in the order in which they come
}

// level returns how much of its part an account would have with so many more jobs.
func (a *standing) level(more int) float64 { return float64(a.running+more) / a.weight }

// fairShare decides which account is next (weighted max-min fairness): the one that has least,
// and of those with as much the one whose job would come first if there were no
// accounts.
type fairShare struct {
	accounts map[string]*standing
	waiting  []*standing // that have ready jobs
}

// fairShare looks at the accounts as they are.
func (q *Queue) fairShare(now time.Time, s *Sharing) *fairShare {
	t := &fairShare{accounts: map[string]*standing{}}
	for _, j := range q.jobs {
		a := t.accounts[j.Account]
		if a == nil {
			a = &standing{weight: 1}
			t.accounts[j.Account] = a
		}
		if s.Shares != nil {
			a.weight = max(a.weight, float64(s.Shares(j.Share)))
		}
		switch {
		case j.running && !j.stopping:
			a.running++
		case !j.running && !j.due.After(now) && q.leaving[j.ID] == nil:
			a.ready = append(a.ready, j)
		}
	}
	for _, a := range t.accounts {
		if len(a.ready) > 0 {
			slices.SortFunc(a.ready, before)
			t.waiting = append(t.waiting, a)
		}
	}
	return t
}

// next returns the account whose turn it is; nil: no job is ready.
func (t *fairShare) next() *standing {
	if len(t.waiting) == 0 {
		return nil
	}
	return slices.MinFunc(t.waiting, func(a, b *standing) int {
		return cmp.Or(cmp.Compare(a.level(0), b.level(0)), before(a.ready[0], b.ready[0]))
	})
}

// give gives an account a place for its first job.
func (t *fairShare) give(a *standing) *Job {
	j := a.ready[0]
	a.ready = a.ready[1:]
	a.running++
	if len(a.ready) == 0 {
		t.waiting = slices.DeleteFunc(t.waiting, func(w *standing) bool { return w == a })
	}
	return j
}

// grant gives places to the accounts whose turn it is.
func (t *fairShare) grant(places int) (jobs []*Job) {
	for range places {
		a := t.next()
		if a == nil {
			break
		}
		jobs = append(jobs, t.give(a))
	}
	return jobs
}

// richest returns the account that would have most if it had one job less.
func (t *fairShare) richest() *standing {
	var most *standing
	for _, a := range t.accounts {
		if a.running > 0 && (most == nil || a.level(-1) > most.level(-1)) {
			most = a
		}
	}
	return most
}

// candidates returns the jobs that run and were not told to stop: first the continuous
// ones, in the order in which they make space for others, then those that are not, the
// one first that has run least, as its work is the least to be lost.
func (q *Queue) candidates() []*Job {
	var out []*Job
	for _, j := range q.jobs {
		if j.running && !j.stopping {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *Job) int {
		switch {
		case a.Continuous != b.Continuous && a.Continuous:
			return -1
		case a.Continuous != b.Continuous:
			return 1
		case a.Continuous:
			return cmp.Or(cmp.Compare(b.priority, a.priority), a.since.Compare(b.since), cmp.Compare(a.index, b.index))
		}
		return cmp.Or(b.since.Compare(a.since), cmp.Compare(b.index, a.index))
	})
	return out
}

// withdrawal takes places away.
type withdrawal struct {
	*fairShare
	candidates []*Job
	stop       []*Job
}

// take stops the first candidate of those that a condition holds for; false: none.
func (w *withdrawal) take(holds func(j *Job, a *standing) bool) bool {
	i := slices.IndexFunc(w.candidates, func(j *Job) bool { return holds(j, w.accounts[j.Account]) })
	if i < 0 {
		return false
	}
	j := w.candidates[i]
	w.accounts[j.Account].running--
	w.candidates = slices.Delete(w.candidates, i, i+1)
	w.stop = append(w.stop, j)
	return true
}

// even takes a place away from the account that has most, for one that has less even
// after that; false: there is none. It may be that of a job that is not continuous:
// within an account those are not stopped for others.
func (w *withdrawal) even(poor *standing) bool {
	rich := w.richest()
	if rich == nil || rich == poor || rich.level(-1) <= poor.level(0) {
		return false
	}
	return w.take(func(_ *Job, a *standing) bool { return a == rich })
}

// rotate stops a continuous job whose place another one gets: one of its account, or of an
// account that has as much as that one is left with.
func (w *withdrawal) rotate(poor *standing) bool {
	return w.take(func(j *Job, a *standing) bool {
		return j.Continuous && (len(a.ready) > 0 || a.level(-1) >= poor.level(0))
	})
}

// Preempt is called whenever something has changed. It returns jobs that have to stop for
// accounts that have jobs ready and none that runs, while others have several; each is
// Ended later, and Fill then gives its place away.
func (q *Queue) Preempt(now time.Time, s *Settings) []*Job {
	t := q.fairShare(now, &s.Sharing)
	t.grant(max(s.MaxJobs-q.running, 0) + q.stopping)
	if poor := t.next(); len(t.accounts) < 2 || poor == nil || poor.running > 0 {
		return nil
	}
	w := withdrawal{fairShare: t, candidates: q.candidates()}
	for {
		poor, rich := t.next(), t.richest()
		if poor == nil || poor.running > 0 || rich == nil || rich.running < 2 || !w.even(poor) {
			break
		}
		t.give(poor)
	}
	q.stopAll(w.stop)
	return w.stop
}

// stopAll notes that jobs are told to stop.
func (q *Queue) stopAll(jobs []*Job) {
	for _, j := range jobs {
		q.stop(j)
	}
}
