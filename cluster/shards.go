package cluster

import (
	"context"
	"slices"

	"divan/shard/ring"
)

// Shards returns the shard map: ranges in ring order, each with the nodes that
// hold a copy. It must not be changed.
func (d *DB) Shards() []ring.Shard { return d.meta.Shards }

// ShardOf returns the shard that a document belongs to, whether or not there
// is such a document. Nodes lists every node with a copy of that part of the
// ring.
func (d *DB) ShardOf(id string) ring.Shard {
	s := d.owner(id)
	out := ring.Shard{Range: s.copies[0].Range}
	for _, t := range s.copies {
		if !slices.Contains(out.Nodes, t.node) {
			out.Nodes = append(out.Nodes, t.node)
		}
	}
	return out
}

// Compact starts the compaction of every copy that can be reached and does not
// wait for it: bodies of inner revisions and attachments that nothing refers
// to are dropped. Compacting a copy that is being compacted already changes
// nothing.
func (d *DB) Compact(ctx context.Context) error {
	return d.everyCopy(ctx, func(rep replica, t target) error {
		return rep.Compact(ctx, t.name, d.limits(), d.meta.Name)
	})
}

// SyncShards brings the copies of every range in line with each other. A range
// whose copies are all on this node has one copy and nothing to do.
func (d *DB) SyncShards(ctx context.Context) error {
	_, err := d.infos(ctx, d.all())
	return err
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
func (d *DB) all() []target {
	var out []target
	for _, s := range d.stretches {
		for _, t := range s.copies {
			if t.Begin == s.Begin { // a copy of several stretches is listed by its first
				out = append(out, t)
			}
		}
	}
	return out
}

// everyCopy calls f for all copies that can be reached.
func (d *DB) everyCopy(_ context.Context, f func(rep replica, t target) error) error {
	all := d.all()
	return d.explain(each(len(all), func(i int) error {
		if rep := d.c.replica(all[i].node); rep != nil {
			return f(rep, all[i])
		}
		return nil
	}))
}
