package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"divan/storage"
	"divan/storage/doc"
)

// Purge removes leaves of documents for good, item by item in order, and tells
// for each which revisions went; inner and unknown ones stay (semantics.md
// section 15). Every item is noted in the log of purges, also when it removed
// nothing (golden bulk/09). A document that keeps other leaves gets a new
// sequence; one without any leaves nothing behind but the log, and its old
// sequence moves on all the same. An item whose uuid is in the log already has
// been done, and is not done again: it may have come from a client's request
// and through another copy.
func (l *Local) Purge(ctx context.Context, name string, items []PurgeItem) ([]PurgeResult, error) {
	if len(items) == 0 {
		return nil, nil
	}
	t := &purgeTask{items: slices.Clone(items)}
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
	known, err := rd.replica.purged.load(rd.store)
	if err != nil {
		return err
	}
	fresh := make([]int, 0, len(t.items)) // items that have not been done
	for i := range t.items {
		it := &t.items[i]
		t.results[i].ID = it.ID
		if it.UUID == ([16]byte{}) {
			it.UUID = newKey()
		}
		if _, done := known[it.UUID]; done {
			continue
		}
		fresh = append(fresh, i)
		known[it.UUID] = struct{}{}
		s, err := d.state(it.ID)
		if err != nil {
			rd.replica.purged.reset()
			return err
		}
		t.results[i].Purged = s.purge(it.Revs)
	}
	rd.adopt(d.order)
	for _, i := range fresh {
		it := &t.items[i]
		rd.purges = append(rd.purges, storage.Purge{Seq: rd.nextPurge(), UUID: it.UUID, ID: it.ID, Revs: it.Revs})
	}
	return nil
}

// purgedSet is the uuids in the log of purges of a copy: what the writer needs
// to know a purge that it has done. It is read with the first purge of a
// writer and goes with it; entries that compaction dropped meanwhile may stay.
type purgedSet struct{ uuids map[[16]byte]struct{} }

func (p *purgedSet) load(store *storage.Store) (map[[16]byte]struct{}, error) {
	if p.uuids != nil {
		return p.uuids, nil
	}
	it, err := store.Purges(0)
	if err != nil {
		return nil, fmt.Errorf("log of purges: %w", err)
	}
	set := make(map[[16]byte]struct{})
	for ok := it.First(); ok; ok = it.Next() {
		set[it.Purge().UUID] = struct{}{}
	}
	err = errors.Join(it.Err(), it.Close())
	if err != nil {
		return nil, fmt.Errorf("log of purges: %w", err)
	}
	p.uuids = set
	return set, nil
}

func (p *purgedSet) reset() { p.uuids = nil }

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
