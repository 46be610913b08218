package reshard

import (
	"context"
	"time"

	"divan/reshard/job"
)

// StopJob stops a job until ResumeJob; one that has ended stays as it is.
func (t *Table) StopJob(ctx context.Context, id, reason string) error {
	return t.change(ctx, id, func(j *job.Job) (bool, error) {
		return j.Stop(reason, time.Now().Unix(), t.history()), nil
	})
}

// ResumeJob lets a job go on that was stopped or has failed. The error is ErrStopped while
// no job may run.
func (t *Table) ResumeJob(ctx context.Context, id string) error {
	return t.change(ctx, id, func(j *job.Job) (bool, error) {
		changed := j.Resume(time.Now().Unix(), t.history())
		if changed && t.State().Stopped {
			return false, ErrStopped
		}
		return changed, nil
	})
}
