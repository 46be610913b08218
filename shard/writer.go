package shard

import (
	"context"
	"sync/atomic"
	"time"

	"divan/storage"
)

const (
	// writerIdleTime is how long a writer without work stays, so that a client that
	// sends one request after the other does not start it each time.
	writerIdleTime = time.Second
	// maxGroupEdits and maxGroupBytes end the collecting of requests for a
	// group. A single request may exceed them.
	maxGroupEdits = 512
	maxGroupBytes = 1 << 20
	// maxUnsynced is how many groups may be on their way to the disk while the
	// next one is decided.
	maxUnsynced = 4
)

// task is one request to the writer of a copy.
type task interface {
	// cost returns how much the task adds to a group: edits and bytes, roughly.
	cost() (edits, bytes int)
	// stage decides the task within the group. An error is the task's alone
	// and leaves no trace in the group. Called on the writer's goroutine.
	stage(r *groupCommit) error
}

// job carries a task through the queue.
type job struct {
	task task
	// store is the store of the copy. The request keeps it pinned until it is answered, so
	// that all jobs that wait for one copy have the same.
	store *storage.Store
	early bool // answer when applied, not when durable
	done  chan error
	// state goes from queued to taken (by the writer) or abandoned (by a
	// request that ended), so that the outcome of a request is always known.
	state atomic.Uint32
}

const (
	jobQueued uint32 = iota
	jobTaken
	jobAbandoned
)

// answer tells the outcome. Only the first one counts.
func (j *job) answer(err error) {
	select {
	case j.done <- err:
	default:
	}
}

// submit has the copy's writer do a task and returns its outcome. store is that
// of the copy, pinned by the caller. When ctx
// ends while the task waits in the queue, the task is not done at all; once
// the writer has taken it, submit stays until the outcome is known, which
// takes as long as the disk does.
func (s *copyStates) submit(ctx context.Context, store *storage.Store, t task, early bool) error {
	c, err := s.acquire(store)
	if err != nil {
		return err
	}
	defer s.release(c)
	j := &job{task: t, store: store, early: early, done: make(chan error, 1)}
	if err := c.enqueue(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if j.state.CompareAndSwap(jobQueued, jobAbandoned) {
			return ctx.Err()
		}
		return <-j.done
	}
}

// enqueue adds a job and starts the writer when it does not run.
func (c *copyState) enqueue(j *job) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.err != nil {
		return c.mu.err
	}
	c.mu.queue = append(c.mu.queue, j)
	if !c.mu.active {
		c.mu.active = true
		c.mu.exited = make(chan struct{})
		c.states.wg.Go(c.runWriter)
	}
	c.wakeWriter()
	return nil
}

// wakeWriter makes a waiting writer look at the queue.
func (c *copyState) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// takeJobs removes the jobs of the next group from the queue.
func (c *copyState) takeJobs(into []*job) []*job {
	c.mu.Lock()
	defer c.mu.Unlock()
	var edits, bytes, n int
	for _, j := range c.mu.queue {
		if n > 0 && (edits >= maxGroupEdits || bytes >= maxGroupBytes) {
			break
		}
		n++
		if !j.state.CompareAndSwap(jobQueued, jobTaken) {
			continue
		}
		e, b := j.task.cost()
		edits, bytes = edits+e, bytes+b
		into = append(into, j)
	}
	rest := copy(c.mu.queue, c.mu.queue[n:])
	clear(c.mu.queue[rest:])
	c.mu.queue = c.mu.queue[:rest]
	return into
}

// runWriter is the writer goroutine: it runs groups while there are jobs, and a
// little longer.
func (c *copyState) runWriter() {
	defer c.states.writerEnded(c)
	c.recent.Reset(c.states.clock.Load())
	c.purged.reset()
	idle := time.NewTimer(writerIdleTime)
	defer idle.Stop()
	var jobs []*job
	for {
		syncs := make(chan *groupCommit, maxUnsynced)
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			c.finish(syncs)
		}()
		for c.waitForJobs(idle) {
			if jobs = c.takeJobs(jobs[:0]); len(jobs) > 0 {
				c.commitGroups(jobs, syncs)
			}
		}
		close(syncs)
		<-finished
		if c.exitIfIdle() {
			return
		}
	}
}

// waitForJobs blocks until there may be jobs; false means that the writer has
// nothing to do any more.
func (c *copyState) waitForJobs(idle *time.Timer) bool {
	select {
	case <-c.wake:
		return true
	default:
	}
	idle.Reset(writerIdleTime)
	for {
		c.mu.Lock()
		empty, leaving := len(c.mu.queue) == 0, c.mu.stopping
		c.mu.Unlock()
		if !empty {
			return true
		}
		if leaving {
			return false
		}
		select {
		case <-c.wake:
		case <-idle.C:
			return false
		case <-c.states.closing:
			return false
		}
	}
}

// exitIfIdle ends the writer unless jobs came meanwhile.
func (c *copyState) exitIfIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.queue) > 0 {
		return false
	}
	c.mu.active = false
	close(c.mu.exited)
	return true
}

// exclusive is a task that fills a batch of its own, without other changes in
// it: the steps of compaction and of Clones.Range.
type exclusive struct {
	fn func(b *storage.Batch) error
	// edits says that it changes what clients read: it takes no space that is kept for
	// what gives space back.
	edits  bool
	design bool // with a design document among the edits
}

func (e *exclusive) cost() (edits, bytes int) { return maxGroupEdits, maxGroupBytes }

func (e *exclusive) stage(g *groupCommit) error {
	g.exclusive = e
	g.design = e.design
	return nil
}

func isExclusive(j *job) bool {
	_, ok := j.task.(*exclusive)
	return ok
}

// write runs fn with a batch of its own on the copy's writer and returns when
// the batch is durable.
func (s *copyStates) write(ctx context.Context, store *storage.Store, fn func(b *storage.Batch) error) error {
	return s.submit(ctx, store, &exclusive{fn: fn}, false)
}
