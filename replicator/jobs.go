package replicator

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/replicator/ownership"
	"divan/replicator/protocol"
	"divan/replicator/scheduler"
	"divan/replicator/spec"
	"divan/storage/memory"
)

// Jobs are the replications that this node runs, for requests and for documents. It
// is safe for concurrent use.
type Jobs struct {
	runner  *scheduler.Runner
	opener  *opener
	meta    *meta.Meta
	owners  *ownership.Table
	memory  *memory.Shares
	figures *protocol.Figures
	log     *zap.Logger
}

func newJobs(o *Options, open *opener, figures *protocol.Figures) *Jobs {
	set := settings{o.Config}
	return &Jobs{
		runner: scheduler.NewRunner(scheduler.RunnerOptions{Settings: set.scheduler, Jitter: set.jitter, Describe: describe}),
		opener: open, meta: o.Meta, owners: o.Owners, memory: o.Memory, figures: figures, log: o.Logger,
	}
}

// newJob returns a job that is not registered yet. Its owner says what is run, and what
// happens at the end.
func newJob(s *spec.Spec, id spec.ID, slot int, term uint64) *job {
	j := &job{spec: s, id: id, slot: slot, term: term, began: time.Now(), done: make(chan struct{})}
	j.Job = scheduler.Job{ID: id.String(), Account: s.Account(), Share: s.Database, Continuous: s.Continuous, Owner: j}
	return j
}

// add registers a job, unless there is one with the same id: that one is returned then.
func (s *Jobs) add(j *job) (there *job) { return jobOf(s.runner.Add(&j.Job)) }

// get returns the job with an id; nil: this node has none.
func (s *Jobs) get(id string) *job { return jobOf(s.runner.Get(id)) }

// stop takes a job away from this node; false: it was gone.
func (s *Jobs) stop(j *job, why error) bool {
	was := s.runner.Remove(&j.Job)
	j.end(why)
	return was
}

// run is one run of a job, which begin has marked; the figures go to progress.
func (s *Jobs) run(ctx context.Context, j *job, progress *protocol.Progress) error {
	result, err := s.replicate(ctx, j, progress)
	j.finish(result)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("a replication has failed", zap.String("replication", j.ID), zap.String("reason", describe(err)), zap.Error(err))
	}
	return err
}

// replicate opens both sides and runs the protocol between them.
func (s *Jobs) replicate(ctx context.Context, j *job, progress *protocol.Progress) (_ *protocol.Result, err error) {
	source, err := s.opener.open(j.spec, &j.spec.Source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := s.opener.open(j.spec, &j.spec.Target)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return protocol.Run(ctx, protocol.Options{
		Spec: j.spec, ID: j.id, Source: source, Target: target, Progress: progress, Logger: s.log, Figures: s.figures, Memory: s.memory.Owner(j.spec.Account()),
		Fence: func(ctx context.Context) error { return s.owners.Check(ctx, j.slot, j.term) },
	})
}
