package cluster

import (
	"context"
	"slices"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard/ring"
)

// Shards returns the shard map: ranges in ring order, each with the nodes that
// hold a copy. It must not be changed.
func (d *DB) Shards() []ring.Shard { return ring.Visible(d.meta.Shards) }

// ShardOf returns the shard that a document belongs to, whether or not there
// is such a document. Nodes lists every node with a copy of that part of the
// ring.
func (d *DB) ShardOf(id string) ring.Shard {
	s := d.owner(id)
	out := ring.Shard{Range: s.copies[0].Range}
	for _, t := range s.all() {
		if !out.On(t.Node) {
			out.Copies = append(out.Copies, ring.Copy{ID: t.ID, Node: t.Node})
		}
	}
	return out
}

// Compact starts the compaction of every copy that can be reached and does not
// wait for it: bodies of inner revisions and attachments that nothing refers
// to are dropped. Compacting a copy that is being compacted already changes
// nothing. A copy that cannot be reached is left out; the error is that of a
// copy when none of them compacts.
func (d *DB) Compact(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fanout.NudgeLimit)
	defer cancel()
	all := d.all()
	errs := make([]error, len(all))
	_ = fanout.Each(len(all), func(i int) error { // errors are looked at below
		errs[i] = fanout.NodeDown(all[i].Node)
		if rep := d.c.replica(all[i]); !rep.Away() {
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
func (d *DB) SyncShards(ctx context.Context) error {
	if _, err := d.covered(); err != nil {
		return err
	}
	if d.c.repair == nil {
		return nil
	}
	var names []string
	for _, t := range d.all() {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return d.c.repair.Sync(ctx, names)
}

// EnsureFullCommit checks that every range can be reached and returns
// instance_start_time. There is nothing to flush: whatever was answered is
// durable.
func (d *DB) EnsureFullCommit(ctx context.Context) (string, error) {
	picked, err := d.covered()
	if err != nil {
		return "", err
	}
	if _, err := d.infos(ctx, picked); err != nil {
		return "", err
	}
	return d.InstanceStart(), nil
}

// all returns every copy once.
func (d *DB) all() []fanout.Target { return d.every((*route).all) }

// full returns every full copy once.
func (d *DB) full() []fanout.Target {
	return d.every(func(s *route) []fanout.Target { return s.copies })
}

func (d *DB) every(of func(s *route) []fanout.Target) []fanout.Target {
	var out []fanout.Target
	for i := range d.routes {
		for _, t := range of(&d.routes[i]) {
			if t.Begin == d.routes[i].Begin { // a copy of several routes is listed by its first
				out = append(out, t)
			}
		}
	}
	return out
}
