package cluster

import (
	"context"
	"slices"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
)

// maintenance holds the operations on all copies of a database.
type maintenance struct {
	*replicaSet
	totals *totals
}

// Compact starts the compaction of every copy that can be reached and does not
// wait for it: bodies of inner revisions and attachments that nothing refers
// to are dropped. Compacting a copy that is being compacted already changes
// nothing. A copy that cannot be reached is left out; the error is that of a
// copy when none of them compacts.
func (d *maintenance) Compact(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
	defer cancel()
	all := d.routing.All()
	errs := make([]error, len(all))
	_ = fanout.Each(len(all), func(i int) error { // errors are looked at below
		errs[i] = fanout.NodeDown(all[i].Node)
		if rep := d.replica(all[i]); !rep.Away() {
			_, errs[i] = replica.Compact.On(ctx, rep, replica.CompactRequest{Copy: all[i].Name, Limits: d.limits(), DB: d.meta.Name})
		}
		return nil
	})
	var failure error
	for _, err := range errs {
		if err == nil {
			return nil
		}
		failure = quorum.Telling(failure, err)
	}
	return d.explain(ctx, failure)
}

// SyncShards starts to bring the copies of every range in line with each other
// and does not wait for it. The error says that some range has no copy that
// can be reached.
func (d *maintenance) SyncShards(ctx context.Context) error {
	if _, err := d.covered(); err != nil {
		return err
	}
	if d.repair == nil {
		return nil
	}
	var names []string
	for _, t := range d.routing.All() {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return d.repair.Sync(ctx, names)
}

// EnsureFullCommit checks that every range can be reached and returns instance_start_time. There is
// nothing to flush: every answered write is durable.
func (d *maintenance) EnsureFullCommit(ctx context.Context) (string, error) {
	picked, err := d.covered()
	if err != nil {
		return "", err
	}
	if _, err := d.totals.infos(ctx, picked); err != nil {
		return "", err
	}
	return instanceStart(d.meta), nil
}
