package reshard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"divan/cluster/meta"
	"divan/reshard/job"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Why a job is not made, as CouchDB calls it.
var (
	ErrJobExists = errors.New("job_already_exists")
	ErrMaxJobs   = errors.New("max_jobs_exceeded")
)

// maxEnded is how many jobs are kept that have ended; the oldest go.
const maxEnded = 1000

// Create makes a job that splits the copy of a range on a node, and returns its id. It
// waits while no jobs run.
func (t *Table) Create(ctx context.Context, db *meta.Database, r ring.Range, c ring.Copy) (id string, err error) {
	source := &job.Source{Node: c.Node, Database: db.Name, DatabaseID: db.ID, Suffix: db.Suffix, Range: r, Copy: c.ID}
	if job.Halves(r) == nil {
		return "", fault.New(fault.BadRequest, "The range is too small to be split.")
	}
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

// admit refuses a job that there is already, or for which there is no room. It returns the
// version of the record that the job takes the place of: one of a split that is complete,
// when the shard is there again.
func (t *Table) admit(source *job.Source) (version uint64, err error) {
	unfinished := 0
	for _, e := range t.entries() {
		switch {
		case e.id == source.ID():
			if e.job.State != job.Completed {
				return 0, ErrJobExists
			}
			version = e.version
		case e.job.Ended() && !e.job.Removed || e.job.Node != source.Node:
		case e.job.DatabaseID == source.DatabaseID && slices.Contains(e.job.Targets(), source.Name()):
			return 0, ErrJobExists // it makes this very shard
		default:
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

// dropEnded makes room for one more job among those that are kept when they have ended.
func (t *Table) dropEnded(ctx context.Context) error {
	ended := slices.DeleteFunc(t.entries(), func(e entry) bool { return !e.job.Ended() || e.job.Removed })
	if len(ended) < maxEnded {
		return nil
	}
	slices.SortFunc(ended, func(a, b entry) int { return cmp.Compare(a.job.Updated, b.job.Updated) })
	for _, e := range ended[:len(ended)-maxEnded+1] {
		if err := t.Remove(ctx, e.id); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}
