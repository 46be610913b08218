package cluster

import (
	"context"

	"divan/shard"
)

// Open returns one revision of a document. The error is fault.NotFound
// "missing" or "deleted" when there is none to show.
func (d *DB) Open(ctx context.Context, o OpenOptions) (*shard.Doc, error) {
	req := shard.OpenRequest{
		ID: o.ID, Rev: o.Rev, Latest: o.Latest, Revs: o.Revs, RevsInfo: o.RevsInfo,
		Conflicts: o.Conflicts, DeletedConflicts: o.DeletedConflicts, LocalSeq: o.LocalSeq,
		AllowDeleted: o.AllowDeleted, HeadOnly: o.HeadOnly, RevsLimit: d.meta.RevsLimit,
	}
	s := d.owner(o.ID)
	switch {
	case len(s.copies) == 1 && s.copies[0].node == d.c.node:
		req.Copy = s.copies[0].name
		got, err := d.c.local.Open(ctx, req)
		return got, d.explain(err)
	case len(s.copies) == 1 || o.R == 1:
		return d.openOneOf(ctx, s, req)
	case !o.Rev.IsZero() && !o.Latest:
		return d.openAny(ctx, s, req)
	default:
		return d.openCopies(ctx, s, o.R, req)
	}
}

// openOneOf believes whatever copy answers.
func (d *DB) openOneOf(ctx context.Context, s *stretch, req shard.OpenRequest) (*shard.Doc, error) {
	var got *shard.Doc
	err := d.ask(ctx, s, func(ctx context.Context, rep replica, name string) error {
		req.Copy = name
		var err error
		got, err = rep.Open(ctx, req)
		return err
	})
	return got, err
}
