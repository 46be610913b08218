package shard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"divan/storage"
	"divan/storage/doc"
)

// Missing tells for each document which of the named revisions are not here;
// inner revisions and tombstones are (golden bulk/07). The answers are in the
// order of ids.
func (l *Local) Missing(ctx context.Context, name string, ids []IDRevs) ([]IDMissing, error) {
	store, err := l.pin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer l.engine.Release(store)
	out := make([]IDMissing, len(ids))
	var newest uint64 // what has to be durable for the answers to stand
	missing := false
	err = eachRecord(store, len(ids), func(i int) string { return ids[i].ID }, func(i int, rec *doc.Record) {
		if rec == nil {
			rec = &doc.Record{}
			missing = true
		}
		newest = max(newest, rec.Seq)
		out[i].ID = ids[i].ID
		out[i].Missing, out[i].PossibleAncestors = rec.Tree.Missing(ids[i].Revs)
	})
	if err != nil {
		return nil, err
	}
	if missing {
		if err := l.waitUnsequenced(ctx, name); err != nil {
			return nil, err
		}
	}
	return out, l.waitDurable(ctx, name, newest)
}

// eachRecord reads n documents, whose ids id tells, in the order of their ids,
// which takes less than half of reading them one by one; nil for one that is
// not there.
func eachRecord(store *storage.Store, n int, id func(i int) string, fn func(i int, rec *doc.Record)) error {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(id(a), id(b)) })
	names := make([]string, n)
	for k, i := range order {
		names[k] = id(i)
	}
	if err := store.Records(names, func(k int, rec *doc.Record) { fn(order[k], rec) }); err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	return nil
}
