package cluster

import (
	"context"

	"divan/cluster/meta/dbsetting"
	"divan/cluster/replica"
	"divan/cluster/routing"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// docReads reads documents.
type docReads struct {
	*replicaSet
	repairs *readRepairs
}

// Open returns one revision of a document. The error is fault.NotFound
// "missing" or "deleted" when there is none to show.
//
// The winner is that of the newest of R copies; with R of 1 that of one copy, which is the copy of
// this node if it has one. A revision that is named is the same everywhere, so that copies are
// asked until one has it or R have not.
func (d *docReads) Open(ctx context.Context, o OpenOptions) (*shard.Doc, error) {
	s := d.routing.Owner(o.ID)
	if len(s.Copies) > 1 || s.Copies[0].Node != d.node {
		before := d.noCopies.Load()
		got, err := d.openAmong(ctx, s, o)
		if gone := d.stillThere(ctx, before); gone != nil {
			return nil, gone
		}
		return got, err
	}
	req := d.openRequest(&o)
	req.Copy = s.Copies[0].Name
	got, err := replica.Open.On(ctx, d.replica(s.Copies[0]), req)
	if fault.Is(err, fault.StaleMap) || fault.Is(err, fault.NoCopy) { // perhaps the shard was split
		return d.openAmong(ctx, s, o)
	}
	return got, d.explain(ctx, err)
}

func (d *docReads) openRequest(o *OpenOptions) shard.OpenRequest {
	return shard.OpenRequest{
		ID: o.ID, Rev: o.Rev, Latest: o.Latest, Revs: o.Revs, RevsInfo: o.RevsInfo,
		Conflicts: o.Conflicts, DeletedConflicts: o.DeletedConflicts, LocalSeq: o.LocalSeq,
		AllowDeleted: o.AllowDeleted, HeadOnly: o.HeadOnly, RevsLimit: d.meta.Settings[dbsetting.RevsLimit],
	}
}

// openAmong is Open when there are several copies, or one elsewhere.
func (d *docReads) openAmong(ctx context.Context, s *routing.Route, o OpenOptions) (*shard.Doc, error) {
	req := d.openRequest(&o)
	switch {
	case !o.Rev.IsZero() && !o.Latest:
		return askOf(ctx, d.replicaSet, s, about{o.ID, o.R}, func(ctx context.Context, rep replica.Copy, t ring.Replica) (*shard.Doc, error) {
			mine := req
			mine.Copy = t.Name
			return replica.Open.On(ctx, rep, mine)
		})
	case len(s.Copies) == 1 || o.R == 1:
		return askOf(ctx, d.replicaSet, s, about{o.ID, 1}, func(ctx context.Context, rep replica.Copy, t ring.Replica) (*shard.Doc, error) {
			mine := req
			mine.Copy = t.Name
			return replica.Open.On(ctx, rep, mine)
		})
	default:
		return d.openCopies(ctx, s, reading{o.R, o.Strict}, req)
	}
}

func errDeleted() error { return fault.New(fault.Deleted, "deleted") }
