package shard

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// linger is how long a writer without work stays, so that a client that
	// sends one request after the other does not start it each time.
	linger = time.Second
	// maxRoundEdits and maxRoundBytes end the collecting of requests for a
	// round. A single request may exceed them.
	maxRoundEdits = 512
	maxRoundBytes = 1 << 20
	// maxUnsynced is how many rounds may be on their way to the disk while the
	// next one is decided.
	maxUnsynced = 4
)

// replica is what this node keeps in memory about a copy while it is written
// to, watched, or broken. A copy without a replica is at rest: everything
// applied to it is durable (horizon H3), so readers need nothing from here.
//
//	R1. A replica is in Local.copies from before its first round is applied
//	    until its last one is durable.
//	R2. At most one writer goroutine per replica; only it builds batches for
//	    the copy's store. It runs while active is set.
type replica struct {
	local   *Local
	name    string
	horizon *horizon
	wake    chan struct{} // room for one: the queue is not empty any more

	users int // holders of enter and watchers; guarded by Local.mu

	mu struct {
		sync.Mutex
		queue    []*job
		active   bool          // the writer runs
		exited   chan struct{} // closed when the writer that runs has ended
		leaving  bool          // the copy was dropped or has stopped: do not linger
		err      error
		watchers map[*Watch]struct{}
	}

	// The rest belongs to the writer.
	recent recent
	purged purgedSet
	begun  uint64 // rounds that wrote something
	// troubled: the copy has stopped before and written nothing since. It belongs
	// to the finisher.
	troubled bool
}

// task is one request to the writer of a copy.
type task interface {
	// cost is what the task adds to a round: edits and bytes, roughly.
	cost() (edits, bytes int)
	// stage decides the task within the round. An error is the task's alone
	// and leaves no trace in the round. Called on the writer's goroutine.
	stage(r *round) error
}

// job carries a task through the queue.
type job struct {
	task  task
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

// submit has the copy's writer do a task and returns its outcome. When ctx
// ends while the task waits in the queue, the task is not done at all; once
// the writer has taken it, submit stays until the outcome is known, which
// takes as long as the disk does.
func (l *Local) submit(ctx context.Context, name string, t task, early bool) error {
	if r := l.lookup(name); r != nil {
		l.revive(r)
	}
	r, err := l.enter(name)
	if err != nil {
		return err
	}
	defer l.leave(r)
	j := &job{task: t, early: early, done: make(chan error, 1)}
	if err := r.enqueue(j); err != nil {
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
func (r *replica) enqueue(j *job) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.err != nil {
		return r.mu.err
	}
	r.mu.queue = append(r.mu.queue, j)
	if !r.mu.active {
		r.mu.active = true
		r.mu.exited = make(chan struct{})
		r.local.wg.Go(r.write)
	}
	r.rouse()
	return nil
}

// rouse makes a waiting writer look at the queue.
func (r *replica) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take removes the jobs of the next round from the queue.
func (r *replica) take(into []*job) []*job {
	r.mu.Lock()
	defer r.mu.Unlock()
	var edits, bytes, n int
	for _, j := range r.mu.queue {
		if n > 0 && (edits >= maxRoundEdits || bytes >= maxRoundBytes) {
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
	rest := copy(r.mu.queue, r.mu.queue[n:])
	clear(r.mu.queue[rest:])
	r.mu.queue = r.mu.queue[:rest]
	return into
}

// write is the writer goroutine: it runs rounds while there are jobs, and a
// little longer.
func (r *replica) write() {
	defer r.local.retire(r)
	r.recent.reset(r.local.clock.Load())
	r.purged.reset()
	idle := time.NewTimer(linger)
	defer idle.Stop()
	var jobs []*job
	for {
		syncs := make(chan *round, maxUnsynced)
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			r.finish(syncs)
		}()
		for r.await(idle) {
			if jobs = r.take(jobs[:0]); len(jobs) > 0 {
				r.rounds(jobs, syncs)
			}
		}
		close(syncs)
		<-finished
		if r.rest() {
			return
		}
	}
}

// await blocks until there may be jobs; false means that the writer has
// nothing to do any more.
func (r *replica) await(idle *time.Timer) bool {
	select {
	case <-r.wake:
		return true
	default:
	}
	idle.Reset(linger)
	for {
		r.mu.Lock()
		empty, leaving := len(r.mu.queue) == 0, r.mu.leaving
		r.mu.Unlock()
		if !empty {
			return true
		}
		if leaving {
			return false
		}
		select {
		case <-r.wake:
		case <-idle.C:
			return false
		case <-r.local.closing:
			return false
		}
	}
}

// rest ends the writer unless jobs came meanwhile.
func (r *replica) rest() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mu.queue) > 0 {
		return false
	}
	r.mu.active = false
	close(r.mu.exited)
	return true
}

// fail stops the copy: its store can no longer make anything durable, and has
// failed before this is called. It stays so until revive.
func (r *replica) fail(err error) {
	r.mu.Lock()
	first := r.mu.err == nil
	if first {
		r.mu.err = err
	}
	queue := r.mu.queue
	r.mu.queue = nil
	r.mu.leaving = true
	r.rouse()
	for w := range r.mu.watchers {
		w.signal() // nothing else would tell that they wait in vain
	}
	r.mu.Unlock()
	r.horizon.fail(err)
	for _, j := range queue {
		if j.state.CompareAndSwap(jobQueued, jobTaken) {
			j.answer(err)
		}
	}
	if first && r.local.stopped(r) {
		r.local.log.Error("shard copy stopped", zap.String("copy", r.name), zap.Error(err))
	}
}

// announce wakes the watchers of the copy and tells the node.
func (r *replica) announce() {
	r.mu.Lock()
	for w := range r.mu.watchers {
		w.signal()
	}
	r.mu.Unlock()
	r.tell()
}

// tell tells the node that the copy has something for other copies.
func (r *replica) tell() {
	if r.local.onUpdate != nil {
		r.local.onUpdate(r.name)
	}
}
