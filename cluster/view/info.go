package view

import (
	"context"
	"slices"

	"divan/cluster"
	"divan/cluster/indexes"
	"divan/cluster/replica"
	"divan/shard/index"
	"divan/shard/ring"
	shardview "divan/shard/view"
)

// Info describes the index of a design document (api.md section 12). Sizes and sequences are sums
// over the ranges of the ring.
type Info struct {
	Signature, Language    string
	Seq, PurgeSeq          uint64 // that the index reflects
	File, External, Active int64  // bytes
	Waiting                int    // queries that wait for an update
	Updating, Compacting   bool
	Collations             []string        // versions, sorted
	LeftOut                uint64          // documents that the index holds nothing of, because they cannot be indexed
	Left                   []index.LeftOut // the first of each range
	Pending                Pending
}

// Pending is how many changes are not in the index yet.
type Pending struct {
	Minimum   uint64 // with the most advanced copy of each range
	Preferred uint64 // with the copies that queries read
	Total     uint64 // of all copies
}

// Info describes the index of a design document.
func (v *Views) Info(ctx context.Context, db *cluster.DB, def *shardview.Definition) (*Info, error) {
	found, err := indexes.OnCopies(ctx, db, func(ctx context.Context, rep replica.Copy, t ring.Replica) (shardview.Info, error) {
		return replica.ViewInfo.On(ctx, rep, replica.IndexRequest{Copy: t.Name, Definition: def.Text})
	})
	if err != nil {
		return nil, err
	}
	out := &Info{Signature: def.Signature, Language: def.Language}
	for _, copies := range found {
		out.add(copies)
	}
	slices.Sort(out.Collations)
	return out, nil
}

// add adds one range: the answers of its copies, that which queries read first.
func (i *Info) add(copies []shardview.Info) {
	first := copies[0]
	i.Seq += first.Seq
	i.PurgeSeq += first.PurgeSeq
	i.File += first.File
	i.External += first.External
	i.Active += first.Active
	i.Waiting += first.Waiting
	i.Pending.Preferred += first.Pending
	i.LeftOut += first.LeftOut
	i.Left = append(i.Left, first.Left...)
	least := first.Pending
	for _, c := range copies {
		least = min(least, c.Pending)
		i.Pending.Total += c.Pending
		i.Updating = i.Updating || c.Updating
		i.Compacting = i.Compacting || c.Compacting
		if c.Collation != "" && !slices.Contains(i.Collations, c.Collation) {
			i.Collations = append(i.Collations, c.Collation)
		}
	}
	i.Pending.Minimum += least
}

// Compact compacts the index of a design document on all copies that can be
// reached.
func (v *Views) Compact(ctx context.Context, db *cluster.DB, def *shardview.Definition) error {
	_, err := indexes.OnCopies(ctx, db, func(ctx context.Context, rep replica.Copy, t ring.Replica) (replica.Done, error) {
		return replica.ViewCompact.On(ctx, rep, replica.IndexRequest{Copy: t.Name, Definition: def.Text})
	})
	return err
}
