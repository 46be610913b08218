package view

import (
	"context"
	"slices"

	"divan/cluster"
	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	index "divan/shard/view"
)

// Info is what a database tells about the index of a design document (api.md
// section 12). Sizes and sequences are sums over the ranges of the ring.
type Info struct {
	Signature, Language    string
	Seq, PurgeSeq          uint64 // that the index reflects
	File, External, Active int64  // bytes
	Waiting                int    // queries that wait for an update
	Updating, Compacting   bool
	Collations             []string // versions, sorted
	Pending                Pending
}

// Pending is how many changes are not in the index yet.
type Pending struct {
	Minimum   uint64 // with the most advanced copy of each range
	Preferred uint64 // with the copies that queries read
	Total     uint64 // of all copies
}

// Info describes the index of a design document.
func (v *Views) Info(ctx context.Context, db *cluster.DB, def *index.Definition) (*Info, error) {
	found, err := onCopies(ctx, db, func(ctx context.Context, rep replica.Copy, t fanout.Target) (index.Info, error) {
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
func (i *Info) add(copies []index.Info) {
	first := copies[0]
	i.Seq += first.Seq
	i.PurgeSeq += first.PurgeSeq
	i.File += first.File
	i.External += first.External
	i.Active += first.Active
	i.Waiting += first.Waiting
	i.Pending.Preferred += first.Pending
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
func (v *Views) Compact(ctx context.Context, db *cluster.DB, def *index.Definition) error {
	_, err := onCopies(ctx, db, func(ctx context.Context, rep replica.Copy, t fanout.Target) (replica.Done, error) {
		return replica.ViewCompact.On(ctx, rep, replica.IndexRequest{Copy: t.Name, Definition: def.Text})
	})
	return err
}

// Cleanup drops the indexes that no design document has any more, on all copies
// that can be reached.
func (v *Views) Cleanup(ctx context.Context, db *cluster.DB) error {
	keep, err := v.signatures(ctx, db)
	if err != nil {
		return err
	}
	_, err = onCopies(ctx, db, func(ctx context.Context, rep replica.Copy, t fanout.Target) (replica.Done, error) {
		return replica.ViewCleanup.On(ctx, rep, replica.CleanupRequest{Copy: t.Name, Keep: keep})
	})
	return err
}

// signatures returns those of the indexes that design documents have.
func (v *Views) signatures(ctx context.Context, db *cluster.DB) ([]string, error) {
	designs, err := v.o.Designs.All(ctx, db)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range designs {
		// A document that cannot be read as one with views has no index.
		if def, err := d.Definition(db.Meta().Partitioned); err == nil && def != nil {
			out = append(out, def.Signature)
		}
	}
	return out, nil
}

// onCopies asks all copies of a database at once, and returns the answers of each
// range, in the order in which queries read the copies. Copies that do not answer
// are left out; a range without any answer is an error.
func onCopies[T any](ctx context.Context, db *cluster.DB, ask func(context.Context, replica.Copy, fanout.Target) (T, error)) ([][]T, error) {
	sources, err := db.Sources("", true)
	if err != nil {
		return nil, err
	}
	asked := db.Asking()
	ctx, cancel := asked.Deadline(ctx)
	defer cancel()
	out := make([][]T, len(sources))
	err = fanout.Each(len(sources), func(i int) error {
		copies := sources[i]
		answers, errs := make([]T, len(copies)), make([]error, len(copies))
		_ = fanout.Each(len(copies), func(k int) error { // errors are looked at below
			rep := asked.Replica(copies[k])
			if rep.Away() {
				errs[k] = fanout.NodeDown(copies[k].Node)
				return nil
			}
			answers[k], errs[k] = ask(ctx, rep, copies[k])
			return nil
		})
		var failure error
		for k := range copies {
			if errs[k] == nil {
				out[i] = append(out[i], answers[k])
			} else {
				failure = quorum.Telling(failure, errs[k])
			}
		}
		if len(out[i]) == 0 {
			return failure
		}
		return nil
	})
	return out, asked.Explain(ctx, err)
}
