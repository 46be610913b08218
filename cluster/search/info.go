package search

import (
	"context"

	"divan/cluster"
	"divan/cluster/indexes"
	"divan/cluster/replica"
	"divan/shard/ring"
	"divan/shard/search"
)

// Info describes an index of a database: sums over the copies that queries read. Exists says
// that each has one.
func (s *Searcher) Info(ctx context.Context, db *cluster.DB, def *search.Definition) (search.Info, error) {
	found, err := indexes.OnCopies(ctx, db, func(ctx context.Context, rep replica.Copy, t ring.Replica) (search.Info, error) {
		return replica.SearchInfo.On(ctx, rep, replica.SearchInfoRequest{Copy: t.Name, Signature: def.Signature, Definition: def.Text})
	})
	out := search.Info{Exists: true}
	for _, copies := range found {
		first := copies[0]
		out.Exists = out.Exists && first.Exists
		out.Seq += first.Seq
		out.PurgeSeq += first.PurgeSeq
		out.Live += first.Live
		out.Dead += first.Dead
		out.Size += first.Size
		out.LeftOut += first.LeftOut
		out.Left = append(out.Left, first.Left...)
	}
	return out, err
}
