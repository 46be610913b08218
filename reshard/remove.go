package reshard

import (
	"context"
	"fmt"
	"time"

	"divan/reshard/job"
)

// Remove stops a job and forgets it. The node that works on it gives up the copies that
// the job has made and that are not needed; meanwhile clients do not see the job any more.
func (t *Table) Remove(ctx context.Context, id string) error {
	return retry(func() error {
		e, err := t.require(ctx, id)
		if err != nil {
			return err
		}
		if e.job.State == job.Completed {
			return t.forget(ctx, &e)
		}
		e.job.Removed, e.job.Updated = true, time.Now().Unix()
		if err := t.put(ctx, &e); err != nil {
			return err
		}
		if _, member := t.dbs.Node(e.job.Runner()); !member {
			return t.undo(ctx, &e)
		}
		if e.job.Type == job.Move { // its node may be away for long
			return t.dbs.propose(ctx, e.job, e.job.Undo(t.dbs.see(e.job)))
		}
		return nil
	})
}

// undo gives up what a removed job has made, as far as that can be done now, and forgets
// it when nothing is left.
func (t *Table) undo(ctx context.Context, e *entry) error {
	changes := e.job.Undo(t.dbs.see(e.job))
	if len(changes) == 0 {
		return t.forget(ctx, e)
	}
	return t.dbs.propose(ctx, e.job, changes)
}

func (t *Table) forget(ctx context.Context, e *entry) error {
	if _, err := t.records.PutRecord(ctx, jobPrefix+e.id, nil, e.version); err != nil {
		return fmt.Errorf("forget job: %w", err)
	}
	return nil
}
