package cluster

import (
	"context"

	"divan/shard"
)

// OpenRevs returns several revisions of one document: with All every leaf, the
// winner first, none for a document that does not exist; otherwise an answer
// for each of Revs (more with Latest), whose Doc is nil when it is not stored.
func (d *DB) OpenRevs(ctx context.Context, o OpenRevsOptions) ([]shard.RevResult, error) {
	req := shard.OpenRevsRequest{
		ID: o.ID, Revs: o.Revs, All: o.All, Latest: o.Latest, WithPath: o.WithPath, RevsLimit: d.meta.RevsLimit,
	}
	var got []shard.RevResult
	err := d.ask(ctx, d.owner(o.ID), func(ctx context.Context, rep replica, name string) error {
		req.Copy = name
		var err error
		got, err = rep.OpenRevs(ctx, req)
		return err
	})
	return got, err
}

// Missing tells for each id, in the order given, which of the revisions the
// database does not have, and which of its leaves they may descend from: what
// _revs_diff and _missing_revs answer.
func (d *DB) Missing(ctx context.Context, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	groups := d.group(len(ids), func(i int) string { return ids[i].ID })
	out := make([]shard.IDMissing, len(ids))
	err := each(len(groups), func(g int) error {
		mine := make([]shard.IDRevs, len(groups[g].items))
		for i, at := range groups[g].items {
			mine[i] = ids[at]
		}
		return d.ask(ctx, groups[g].stretch, func(ctx context.Context, rep replica, name string) error {
			answers, err := rep.Missing(ctx, name, mine)
			if err != nil {
				return err
			}
			for i, at := range groups[g].items {
				out[at] = answers[i]
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
