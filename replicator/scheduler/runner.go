package scheduler

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"divan/storage/pause"
)

// RunnerOptions configures a Runner. All are required.
type RunnerOptions struct {
	// Settings returns the settings of now.
	Settings func() Settings
	// Jitter returns how long the start of a job is put off at most when as many
	// jobs start together as may run.
	Jitter func() time.Duration
	// Describe returns the text of the error of a crash, for the history.
	Describe func(error) string
}

// Runner runs the jobs of a queue. It is safe for concurrent use.
//
// LOCKS: mu guards what is in it; nothing is called while it is held.
type Runner struct {
	options RunnerOptions
	wake    chan struct{} // has one token when the queue is to be asked
	mu      struct {
		sync.Mutex
		queue     *Queue
		cancel    map[*Job]context.CancelFunc // of jobs that run
		lastCycle time.Time
	}
}

// NewRunner returns a runner without jobs.
func NewRunner(o RunnerOptions) *Runner {
	r := &Runner{options: o, wake: make(chan struct{}, 1)}
	r.mu.queue = NewQueue()
	r.mu.cancel = map[*Job]context.CancelFunc{}
	return r
}

// Run runs jobs until ctx ends, and waits for those that run to stop.
func (r *Runner) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-timer.C:
		}
		start, next := r.step(ctx, time.Now())
		for _, s := range start {
			running.Go(func() { r.run(ctx, &s) })
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// starting is a job that is to be run.
type starting struct {
	job   *Job
	ctx   context.Context //nolint:containedctx // of the run
	delay time.Duration
}

// step does what is due, and returns what starts and when to come back.
func (r *Runner) step(ctx context.Context, now time.Time) (start []starting, next time.Time) {
	s := r.options.Settings()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.lastCycle.IsZero() {
		r.mu.lastCycle = now
	}
	if now.Sub(r.mu.lastCycle) >= s.Interval {
		r.mu.lastCycle = now
		for _, j := range r.mu.queue.Cycle(now, &s) {
			r.mu.cancel[j]()
		}
	}
	for _, j := range r.mu.queue.Preempt(now, &s) {
		r.mu.cancel[j]()
	}
	jobs := r.mu.queue.Fill(now, &s)
	jitter := r.options.Jitter() * time.Duration(len(jobs)-1) / time.Duration(max(s.MaxJobs, 1))
	for _, j := range jobs {
		own, cancel := context.WithCancel(ctx)
		r.mu.cancel[j] = cancel
		at := starting{job: j, ctx: own}
		if jitter > 0 {
			at.delay = rand.N(jitter)
		}
		start = append(start, at)
	}
	return start, r.mu.queue.Next(r.mu.lastCycle, &s)
}

// run is one run of a job.
func (r *Runner) run(ctx context.Context, s *starting) {
	err := pause.For(s.ctx, s.delay) //nolint:contextcheck // it is a child of ctx
	if err == nil {
		err = s.job.Run(s.ctx) //nolint:contextcheck // the same
	}
	how, reason := Done, ""
	if err != nil {
		how = Interrupted
		if s.ctx.Err() == nil {
			how, reason = Failed, r.options.Describe(err)
		}
	}
	if r.ended(s.job, how, reason) && s.job.Ended != nil {
		s.job.Ended(ctx, err)
	}
	r.poke()
}

func (r *Runner) ended(j *Job, how Outcome, reason string) (out bool) {
	s := r.options.Settings()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.cancel[j]()
	delete(r.mu.cancel, j)
	return r.mu.queue.Ended(j, how, reason, time.Now(), &s)
}

// poke has the queue asked soon.
func (r *Runner) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Changed tells that the settings have changed.
func (r *Runner) Changed() { r.poke() }

// Add adds a job; when there is one with its id, that one is returned.
func (r *Runner) Add(j *Job) (there *Job) {
	s := r.options.Settings()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.queue.Add(j, time.Now(), &s) {
		return r.mu.queue.jobs[j.ID]
	}
	r.poke()
	return nil
}

// Remove takes a job out and stops it, without waiting for its end; false: it
// is out already.
func (r *Runner) Remove(j *Job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.queue.Remove(j) {
		return false
	}
	if cancel := r.mu.cancel[j]; cancel != nil {
		cancel()
	}
	r.poke()
	return true
}

// Get returns the job with an id; nil when there is none.
func (r *Runner) Get(id string) *Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.queue.jobs[id]
}

// Jobs returns all jobs, in no order.
func (r *Runner) Jobs() []*Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*Job, 0, len(r.mu.queue.jobs))
	for _, j := range r.mu.queue.jobs {
		out = append(out, j)
	}
	return out
}

// State says what a job does.
func (r *Runner) State(j *Job) State {
	healthy := r.options.Settings().HealthThreshold
	r.mu.Lock()
	defer r.mu.Unlock()
	return j.state(time.Now(), healthy)
}

// Figures are numbers for the statistics.
type Figures struct {
	Totals
	Total, Running, Pending, Crashed int // jobs
}

// Figures counts jobs.
func (r *Runner) Figures() Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := Figures{Totals: r.mu.queue.totals, Total: len(r.mu.queue.jobs)}
	for _, j := range r.mu.queue.jobs {
		_, crashing := j.crashReason()
		switch {
		case j.running:
			f.Running++
		case crashing:
			f.Crashed++
		default:
			f.Pending++
		}
	}
	return f
}
