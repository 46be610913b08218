package reshard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"divan/reshard/job"
	"divan/storage/fault"
)

// Why a job is not made, as CouchDB calls it.
var (
	ErrJobExists = errors.New("job_already_exists")
	ErrMaxJobs   = errors.New("max_jobs_exceeded")
)

// maxEnded is how many jobs are kept that have ended; the oldest go.
const maxEnded = 1000

// Create makes a job, and returns its id. It waits while no jobs run. The errors are ErrJobExists, also
// for another job that has to do with the same copies, ErrMaxJobs, and those of a proposal.
func (t *Table) Create(ctx context.Context, source *job.Source) (id string, err error) {
	if err := t.dropEnded(ctx); err != nil {
		return "", err
	}
	id = source.ID()
	return id, retry(func() error {
		version, err := t.admit(source)
		if errors.Is(err, ErrJobExists) && t.forgotten(ctx, id) {
			version, err = t.admit(source)
		}
		if err != nil {
			return err
		}
		j := job.NewJob(source, time.Now().Unix())
		t.settled(j)
		return t.put(ctx, &entry{id, version, j})
	})
}

// admit refuses a job that there is already, or for which there is no space. It returns the
// version of the record that the job takes the place of: one of a split that is complete,
// when the shard is there again.
func (t *Table) admit(source *job.Source) (version uint64, err error) {
	unfinished := 0
	for _, e := range t.entries() {
		_, there := t.dbs.database(e.job)
		switch {
		case e.id == source.ID():
			if there && e.job.State != job.Completed {
				return 0, ErrJobExists
			}
			version = e.version
		case !there: // its database was deleted
		case e.job.Ended() && !e.job.Removed:
		case e.job.Removed && len(e.job.Undo(t.dbs.see(e.job))) == 0: // its node has only to forget it
		case e.job.Meets(source):
			return 0, ErrJobExists
		case e.job.Runner() == source.Runner():
			unfinished++
		}
	}
	if unfinished >= t.config.Load().Reshard.MaxJobs {
		return 0, ErrMaxJobs
	}
	return version, nil
}

// forgetWithin is how long a new job waits until nothing is left of a removed one.
const forgetWithin = 5 * time.Second

// forgotten reports whether a job was removed, after it is gone.
func (t *Table) forgotten(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, forgetWithin)
	defer cancel()
	for {
		changed := t.records.RecordsChanged()
		e, ok := t.entry(id)
		if !ok || !e.job.Removed {
			return !ok
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// dropEnded makes space for one more job among those that are kept when they have ended.
func (t *Table) dropEnded(ctx context.Context) error {
	ended := slices.DeleteFunc(t.entries(), func(e entry) bool { return !e.job.Ended() || e.job.Removed })
	if len(ended) < maxEnded {
		return nil
	}
	slices.SortFunc(ended, func(a, b entry) int { return cmp.Compare(a.job.Updated, b.job.Updated) })
	for _, e := range ended[:len(ended)-maxEnded+1] {
		remove := func() error { return t.Remove(ctx, e.id) }
		if !t.visible(e.job) { // its database was deleted
			remove = func() error { return t.forget(ctx, &e) }
		}
		if err := remove(); err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}
