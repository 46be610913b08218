package scheduler

import "time"

// Sharing are the settings of fair shares.
type Sharing struct {
	UsageCoeff    float64 // what is left of past usage after a cycle, 0 to 1
	PriorityCoeff float64 // what is left of a job's priority after a cycle, 0 to 1
	// Shares returns the shares of a replicator database, at least 1; nil: all
	// have the same.
	Shares func(share string) int
}

// charge adds what a job has run since it was charged last to the usage of its
// share.
func (q *Queue) charge(j *Job, now time.Time) {
	q.usage[j.Share] += now.Sub(j.charged).Seconds()
	j.charged = now
}

// leastUsage is the usage below which a share is forgotten. In seconds.
const leastUsage = 0.001

// account is done once a cycle: usage fades, what runs is charged, priorities
// fade so that no job waits for ever, and those of a share rise with its usage.
func (q *Queue) account(now time.Time, s *Sharing) {
	for share, used := range q.usage {
		if used *= s.UsageCoeff; used < leastUsage {
			delete(q.usage, share)
		} else {
			q.usage[share] = used
		}
	}
	jobs := map[string]int{}
	for _, j := range q.jobs {
		jobs[j.Share]++
		if j.running {
			q.charge(j, now)
		}
	}
	for _, j := range q.jobs {
		j.priority *= s.PriorityCoeff
		if !j.running {
			continue
		}
		shares := 1.0
		if s.Shares != nil {
			shares = float64(max(s.Shares(j.Share), 1))
		}
		j.priority += q.usage[j.Share] * float64(jobs[j.Share]) / (shares * shares)
	}
}
