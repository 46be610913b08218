package replicator

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"divan/replicator/ownership"
	"divan/replicator/protocol"
	"divan/replicator/scheduler"
	"divan/replicator/spec"
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

// jobOf returns what the scheduler runs as a job of this package.
func jobOf(s *scheduler.Job) *job {
	if s == nil {
		return nil
	}
	j, _ := s.Owner.(*job)
	return j
}

// begin marks the beginning of a run, and returns what counts its figures.
func (j *job) begin() *protocol.Progress {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress, j.running = &protocol.Progress{}, time.Now()
	return j.progress
}

// finish marks the end of a run.
func (j *job) finish(result *protocol.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.result, j.running = result, time.Time{}
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

// pid is a name for what runs a job, for clients that expect one.
func (j *job) pid() string {
	return "<0." + strconv.FormatUint(uint64(j.began.UnixNano())%1_000_000, 10) + ".0>"
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
