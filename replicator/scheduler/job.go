package scheduler

import (
	"context"
	"slices"
	"time"
)

// EventType says what happened to a job.
type EventType uint8

// The types of events.
const (
	Added EventType = iota
	Started
	Stopped
	Crashed
)

// String returns the type as _scheduler/jobs shows it.
func (t EventType) String() string {
	return [...]string{"added", "started", "stopped", "crashed"}[t]
}

// Event is an entry of the history of a job.
type Event struct {
	Time   time.Time
	Type   EventType
	Reason string // of a crash
}

// Job is a replication that runs until it is done, or again and again. The
// exported fields do not change once it was added.
type Job struct {
	ID         string // of the replication
	Account    string // whose turns it takes
	Share      string // the replicator database whose share it uses; empty: that of requests
	Continuous bool
	// Transient jobs are removed by a crash.
	Transient bool
	// Run is one run, until ctx ends, it is done (nil) or fails.
	Run func(ctx context.Context) error
	// Ended is called after a job was removed because it is done (nil), or because
	// it is transient and crashed. ctx is that of Runner.Run, which waits.
	Ended func(ctx context.Context, err error)
	// Owner is for the caller of Add: what the job belongs to.
	Owner any

	queued
}

// queued is the state that a Queue keeps of a job.
type queued struct {
	history  []Event // the oldest first
	crashes  int     // since it last ran for long enough
	running  bool
	stopping bool      // it runs and was told to stop
	since    time.Time // when it was started last
	due      time.Time // after a crash: not before
	charged  time.Time // what ran until then is accounted for
	priority float64   // the lowest comes first
	index    uint64    // order of arrival
}

// crashReason returns why the job is crashing; false when it is not.
func (j *Job) crashReason() (string, bool) {
	if n := len(j.history); n > 0 && j.history[n-1].Type == Crashed {
		return j.history[n-1].Reason, true
	}
	return "", false
}

// remember adds to the history, which keeps most events.
func (j *Job) remember(e Event, most int) {
	if drop := len(j.history) + 1 - max(most, 1); drop > 0 {
		j.history = slices.Delete(j.history, 0, drop)
	}
	j.history = append(j.history, e)
}

// State says what a job does at a moment.
type State struct {
	Running  bool
	Crashing bool   // it waits because it crashed
	Reason   string // of the crash
	Crashes  int    // in a row
	History  []Event
}

// LastUpdated returns the time of the last event.
func (s *State) LastUpdated() time.Time {
	if len(s.History) == 0 {
		return time.Time{}
	}
	return s.History[len(s.History)-1].Time
}

// state describes a job that has run for long enough as one without crashes.
func (j *Job) state(now time.Time, healthy time.Duration) State {
	s := State{Running: j.running, Crashes: j.crashes, History: slices.Clone(j.history)}
	if j.running && now.Sub(j.since) > healthy {
		s.Crashes = 0
	}
	if !j.running {
		s.Reason, s.Crashing = j.crashReason()
	}
	return s
}
