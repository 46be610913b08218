package protocol

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/fault"
	"divan/storage/memory"
)

// Options configures a run. The caller closes the endpoints.
type Options struct {
	Spec   *spec.Spec
	ID     spec.ID
	Source endpoint.Source
	Target endpoint.Target
	// Fence is called right before each checkpoint is written; its error ends
	// the run. nil: nothing to check.
	Fence    func(ctx context.Context) error
	Progress *Progress // nil: not reported
	// Memory counts changes and documents on their way; nil: they are not counted.
	Memory  *memory.Owner
	Figures *Figures // nil: nothing is counted
	Logger  *zap.Logger
}

// Result is the answer of a run that has come to its end.
type Result struct{ body []byte }

// AppendJSON appends the body of the answer to POST /_replicate.
func (r *Result) AppendJSON(dst []byte) []byte { return append(dst, r.body...) }

// Run replicates. It returns when everything is copied that the source had. A
// continuous replication goes on until ctx ends, whose error is returned then,
// or until something fails. How far it has come is remembered when ctx ends.
func Run(ctx context.Context, o Options) (*Result, error) {
	if o.Progress == nil {
		o.Progress = &Progress{}
	}
	if o.Figures == nil {
		o.Figures = new(Figures)
	}
	o.Progress.update(func(s *Stats) { s.ChangesPending = -1 }) // until the source has told
	r := &run{Options: o, log: o.Logger.WithLazy(zap.Stringer("replication", o.ID))}
	r.bytes.Store(maxWriteBytes)
	r.size.Store(int64(o.Spec.BatchSize))
	if err := r.open(ctx); err != nil {
		countIf(ctx, &r.Figures.FailedStarts, err)
		return nil, err
	}
	if err := r.copy(ctx); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// run is one replication.
type run struct {
	Options
	log     *zap.Logger
	session session
	source  side
	target  side
	answer  []byte       // the newest checkpoint of this session; nil: none yet
	size    atomic.Int64 // rows of the next batch
	bytes   atomic.Int64 // of bodies in one write; the target may take less than we would
	done    watermark
}

// side is one of the run's databases and what the run knows about it.
type side struct {
	endpoint.Database
	name     string // for people
	instance string // instance_start_time when the run began
	history  history
	readOnly bool // takes no checkpoints
	memory   *memory.Owner
}

// open finds both databases, creates the target if that is asked for, and reads
// where the last session ended.
func (r *run) open(ctx context.Context) error {
	r.source = side{Database: r.Source, name: "source " + r.Spec.Source.URL, memory: r.Memory}
	r.target = side{Database: r.Target, name: "target " + r.Spec.Target.URL, memory: r.Memory}
	info, err := r.Source.Info(ctx)
	if err != nil {
		return refusal(err, r.Spec.Source.URL)
	}
	r.source.instance = info.InstanceStart
	info, err = r.Target.Info(ctx)
	if r.Spec.CreateTarget && fault.Is(err, fault.NoDatabase) {
		if err = r.Target.Create(ctx, r.Spec.CreateParams); err == nil {
			info, err = r.Target.Info(ctx)
		}
	}
	if err != nil {
		return refusal(err, r.Spec.Target.URL)
	}
	r.target.instance = info.InstanceStart
	return r.begin(ctx)
}

// refusal returns the error for a client when a database cannot be used.
func refusal(err error, url string) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "" {
		return err
	}
	switch f.Kind {
	case fault.NoDatabase, fault.NotFound, fault.IllegalDatabaseName:
		return endpoint.NoDatabase(url)
	case fault.Unauthorized:
		return endpoint.Unauthorized(url)
	case fault.Forbidden:
		return endpoint.Forbidden(url)
	default:
		return err
	}
}

// begin starts a session where both sides agree that an earlier one has ended.
func (r *run) begin(ctx context.Context) error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	r.session = session{id: hex.EncodeToString(id[:]), began: time.Now(), byIDs: r.Spec.Filter.HasIDs}
	var stats Stats
	if r.Spec.UseCheckpoints {
		for _, s := range []*side{&r.source, &r.target} {
			if err := s.load(ctx, r.ID.Base); err != nil {
				return err
			}
		}
		r.session.start, r.session.older = common(&r.source.history, &r.target.history)
	}
	r.session.older = r.session.older[:min(len(r.session.older), maxHistory-1)]
	r.source.history.sessions, r.target.history.sessions = nil, nil // they have been compared
	if len(r.session.older) > 0 {
		r.session.older[0].resume(&stats)
	}
	if r.session.start == "" {
		r.session.start = seqOf([]byte(r.Spec.Since))
	}
	start := r.session.start
	stats.CheckpointedSeq, stats.SourceSeq, stats.ThroughSeq = start, start, start
	stats.ChangesPending = r.done.count(r.pending(ctx, start))
	r.Progress.update(func(s *Stats) { *s = stats })
	r.done.through, r.done.committed = start, start
	return nil
}

// pending asks how much there is to do; -1 when the source does not know.
func (r *run) pending(ctx context.Context, since endpoint.Seq) int64 {
	n, err := r.Source.Pending(ctx, since)
	if err != nil {
		return -1 // for people only
	}
	return n
}

// result tells what has been done.
func (r *run) result() *Result {
	stats := r.Progress.Snapshot()
	body := []byte(`{"ok":true`)
	switch {
	case !r.Spec.UseCheckpoints:
		body = append(body, `,"use_checkpoints":false`...)
		body = append(stats.appendBulkGet(body), '}')
	case r.answer == nil || !r.done.changed:
		body = append(body, `,"no_changes":true`...)
		body = appendMembers(body, r.source.history.text)
	default:
		body = appendMembers(body, r.answer)
	}
	return &Result{body: body}
}

// appendMembers appends the members of a compact object, and its closing brace,
// to an object that has members already.
func appendMembers(dst, object []byte) []byte {
	if len(object) <= len("{}") {
		return append(dst, '}')
	}
	return append(append(dst, ','), object[1:]...)
}
