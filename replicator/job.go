package replicator

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"divan/replicator/ownership"
	"divan/replicator/protocol"
	"divan/replicator/scheduler"
	"divan/replicator/spec"
	"divan/storage/doc"
	"divan/storage/fault"
)

// job is a replication that this node runs: for a request or for a document.
type job struct {
	scheduler.Job
	spec  *spec.Spec
	id    spec.ID
	slot  int
	term  uint64
	began time.Time // when it was taken in
	doc   *document // nil: it is of a request
	done  chan struct{}
	// request is the request that the job runs for; nil: it is of a document.
	request *Request
	alone   bool // no other node runs it; only for the run that is under way

	mu       sync.Mutex
	progress *protocol.Progress // of the newest run; nil before the first
	running  time.Time          // when that began; zero while there is none
	result   *protocol.Result   // of one that is done
	err      error              // of one that ended otherwise
}

// newJob returns a job that is not registered yet.
func (r *Replicator) newJob(s *spec.Spec, id spec.ID, slot int, term uint64, d *document) *job {
	j := &job{spec: s, id: id, slot: slot, term: term, began: time.Now(), doc: d, done: make(chan struct{})}
	j.Job = scheduler.Job{
		ID: id.String(), Account: s.Account(), Share: s.Database, Continuous: s.Continuous, Transient: d == nil,
		Run:   func(ctx context.Context) error { return r.run(ctx, j) },
		Ended: func(ctx context.Context, err error) { r.ended(ctx, j, err) },
		Owner: j,
	}
	return j
}

// jobOf returns what the scheduler runs as a job of this package.
func jobOf(s *scheduler.Job) *job {
	if s == nil {
		return nil
	}
	j, _ := s.Owner.(*job)
	return j
}

// run is one run of a job.
func (r *Replicator) run(ctx context.Context, j *job) error {
	j.mu.Lock()
	j.progress, j.running = &protocol.Progress{}, time.Now()
	progress := j.progress
	j.mu.Unlock()
	if j.doc != nil {
		if err := r.onlyOne(ctx, j); err != nil {
			return err
		}
		r.tellState(ctx, j.doc, docState{name: "triggered", id: j.ID})
	}
	result, err := r.replicate(ctx, j, progress)
	j.mu.Lock()
	j.result, j.running = result, time.Time{}
	j.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		r.crashed(ctx, j, err)
	}
	return err
}

// onlyOne fails the replication of a document when another node runs the same
// one for another document that came first. Both may ask at once: then they agree
// on which that is.
func (r *Replicator) onlyOne(ctx context.Context, j *job) error {
	if j.alone || len(r.o.Meta.Nodes()) < 2 {
		return nil
	}
	own := [...]string{timestamp(j.began), j.doc.key.db, j.doc.key.id}
	for _, row := range r.o.Others(ctx, "/_scheduler/jobs/"+url.PathEscape(j.ID)) {
		var other [len(own)]string
		for i, name := range [...]string{"start_time", "database", "doc_id"} {
			other[i], _ = doc.Unquote(doc.Lookup(row, name))
		}
		first := docKey{other[1], other[2]}
		if first.id == "" || first == j.doc.key || slices.Compare(own[:], other[:]) < 0 {
			continue // of a request, or of the node that had this document before
		}
		reason := duplicate(j.id, j.doc.key, first)
		r.writeState(ctx, j.doc, docState{name: Failed, reason: reason})
		return fault.New(fault.Conflict, reason)
	}
	j.alone = true
	return nil
}

// replicate opens both sides and runs the protocol between them.
func (r *Replicator) replicate(ctx context.Context, j *job, progress *protocol.Progress) (_ *protocol.Result, err error) {
	source, err := r.open(j.spec, &j.spec.Source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := r.open(j.spec, &j.spec.Target)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return protocol.Run(ctx, protocol.Options{
		Spec: j.spec, ID: j.id, Source: source, Target: target, Progress: progress, Logger: r.log, Figures: &r.stats.runs, Memory: r.o.Memory.Owner(j.spec.Account()),
		Fence: func(ctx context.Context) error { return r.o.Owners.Check(ctx, j.slot, j.term) },
	})
}

// ended is called when a job is done, or was for a request and failed.
func (r *Replicator) ended(ctx context.Context, j *job, err error) {
	if j.doc != nil {
		r.completed(ctx, j)
		return
	}
	j.end(err)
}

// end tells who waits for the job that there will be no other result.
func (j *job) end(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.done:
	default:
		j.err = err
		close(j.done)
	}
}

// wait waits until the job is done.
func (j *job) wait(ctx context.Context) (*protocol.Result, error) {
	select {
	case <-j.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.result, j.err
}

// figures returns the figures of the newest run and when it began, zero when none
// is under way; false before there are any.
func (j *job) figures() (s protocol.Stats, running time.Time, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.progress == nil {
		return s, running, false
	}
	s = j.progress.Snapshot()
	return s, j.running, !j.running.IsZero() || s.RevisionsChecked > 0 || s.SourceSeq != ""
}

// stop takes a job away from this node; false: it was gone.
func (r *Replicator) stop(j *job, why error) bool {
	was := r.runner.Remove(&j.Job)
	j.end(why)
	return was
}

// describe returns the text of an error that any client may see.
func describe(err error) string {
	var f *fault.Error
	switch {
	case errors.Is(err, ownership.ErrLost):
		return ownership.ErrLost.Error()
	case !errors.As(err, &f):
		return err.Error()
	case f.Code != "":
		return f.Code + ": " + f.Reason
	case f.Kind == fault.Unauthorized:
		return "unauthorized: " + f.Reason
	case f.Kind == fault.Forbidden:
		return "forbidden: " + f.Reason
	default:
		return f.Reason
	}
}
