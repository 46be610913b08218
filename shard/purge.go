package shard

import (
	"context"
	"fmt"

	"divan/storage"
	"divan/storage/doc"
)

// Purge removes leaves of documents for good, item by item in order, and tells
// for each which revisions went; inner and unknown ones stay (semantics.md
// section 15). Every item is noted in the log of purges, also when it removed
// nothing (golden bulk/09). A document that keeps other leaves gets a new
// sequence; one without any leaves nothing behind but the log, and its old
// sequence moves on all the same.
func (l *Local) Purge(ctx context.Context, name string, items []PurgeItem) ([]PurgeResult, error) {
	if len(items) == 0 {
		return nil, nil
	}
	t := &purgeTask{items: items}
	if err := l.submit(ctx, name, t, false); err != nil {
		return nil, err
	}
	return t.results, nil
}

type purgeTask struct {
	items   []PurgeItem
	results []PurgeResult
}

func (t *purgeTask) cost() (edits, bytes int) { return len(t.items), 0 }

func (t *purgeTask) stage(rd *round) error {
	t.results = make([]PurgeResult, len(t.items))
	d := decider{req: &UpdateRequest{}, from: rd}
	for i := range t.items {
		it := &t.items[i]
		s, err := d.state(it.ID)
		if err != nil {
			return err
		}
		t.results[i] = PurgeResult{ID: it.ID, Purged: s.purge(it.Revs)}
	}
	rd.adopt(d.order)
	for i := range t.items {
		p := storage.Purge{Seq: rd.nextPurge(), UUID: t.items[i].UUID, ID: t.items[i].ID, Revs: t.items[i].Revs}
		if p.UUID == ([16]byte{}) {
			p.UUID = newKey()
		}
		rd.purges = append(rd.purges, p)
	}
	return nil
}

// Purges returns the log of purges after a purge sequence, oldest first. It
// holds at most about Limits.PurgedInfos entries, so it is returned whole.
func (l *Local) Purges(ctx context.Context, name string, since uint64) ([]PurgeInfo, error) {
	store, err := l.pin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer l.engine.Release(store)
	it, err := store.Purges(since)
	if err != nil {
		return nil, fmt.Errorf("log of purges of %s: %w", name, err)
	}
	var out []PurgeInfo
	for ok := it.First(); ok; ok = it.Next() {
		p := it.Purge()
		out = append(out, PurgeInfo{Seq: p.Seq, UUID: p.UUID, ID: p.ID, Revs: append([]doc.Rev{}, p.Revs...)})
	}
	if err := it.Err(); err != nil {
		_ = it.Close()
		return nil, fmt.Errorf("log of purges of %s: %w", name, err)
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("log of purges of %s: %w", name, err)
	}
	return out, l.durableLoose(ctx, name)
}
