package shard

import (
	"context"
	"fmt"
	"slices"

	"divan/storage"
	"divan/storage/doc"
)

// Purge removes leaves of documents for good, item by item in order, and tells
// for each which revisions went; inner and unknown ones stay (semantics.md
// section 15). Every item is noted in the purge log, also when it removed
// nothing (golden bulk/09). A document that keeps other leaves gets a new
// sequence; one without any leaves nothing behind but the log, and its old
// sequence moves on all the same.
//
// An item that comes from another copy tells with its paths what was removed there; a
// leaf on one of them goes as well, without being mentioned in the result (see
// purgedHistory). An item whose uuid is in the log already has been done, and is not
// done again: it may have come from a client's request and through another copy. Only
// what its paths tell that this copy did not know is made up for, and noted as a
// further entry with that uuid, so that every follower of this copy's log hears of
// it.
func (l *Local) Purge(ctx context.Context, name string, items []PurgeItem) ([]PurgeResult, error) {
	if len(items) == 0 {
		return nil, nil
	}
	at, err := l.states.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	t := &purgeTask{items: slices.Clone(items)}
	if err := l.states.submit(ctx, at.store, t, false); err != nil {
		return nil, err
	}
	return t.results, nil
}

type purgeTask struct {
	items   []PurgeItem
	results []PurgeResult
}

func (t *purgeTask) cost() (edits, bytes int) { return len(t.items), 0 }

func (t *purgeTask) stage(g *groupCommit) error {
	t.results = make([]PurgeResult, len(t.items))
	log := purgeLog{group: g, index: &g.copy.purged}
	if err := log.index.load(g.store); err != nil {
		return err
	}
	d := touchedDocs{from: g, most: len(t.items)}
	for i := range t.items {
		it := &t.items[i]
		t.results[i].ID = it.ID
		if it.UUID == ([16]byte{}) {
			it.UUID = newKey()
		}
		was, found, err := log.entry(it.UUID)
		if err != nil {
			return err
		}
		done := found || log.done(it.UUID)
		if done && (!found || was.ID != it.ID) {
			continue // compaction has dropped the entry
		}
		l := newPurgedHistory(it.Revs, nil)
		if done {
			l = newPurgedHistory(was.Revs, was.Paths)
		}
		fresh := l.learn(it.Paths)
		if done && len(fresh) == 0 {
			continue
		}
		s, err := d.state(it.ID, false)
		if err != nil {
			return err
		}
		if err := s.widen(g); err != nil {
			return err
		}
		if !done {
			t.results[i].Purged = s.purge(it.Revs, l)
		}
		s.purgeIf(func(r doc.Rev) bool { _, ok := fresh[r]; return ok }, l)
		log.add(storage.Purge{UUID: it.UUID, ID: it.ID, Revs: l.revs, Paths: l.paths()})
	}
	g.adopt(d.order)
	log.keep()
	return nil
}

// Purges returns the purge log after a purge sequence, oldest first and
// whole. Only compaction makes it shorter: to Limits.PurgedInfos entries, or to
// what a follower has not passed. A
// purge of which more became known later has several entries.
func (l *Local) Purges(ctx context.Context, name string, since uint64) ([]PurgeInfo, error) {
	store, err := l.states.pin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer l.states.engine.Release(store)
	it, err := store.Purges(since)
	if err != nil {
		return nil, fmt.Errorf("purge log of %s: %w", name, err)
	}
	var out []PurgeInfo
	for ok := it.First(); ok; ok = it.Next() {
		p := it.Purge()
		out = append(out, PurgeInfo{Seq: p.Seq, UUID: p.UUID, ID: p.ID, Revs: append([]doc.Rev{}, p.Revs...), Paths: p.Paths})
	}
	if err := it.Err(); err != nil {
		_ = it.Close()
		return nil, fmt.Errorf("purge log of %s: %w", name, err)
	}
	if err := it.Close(); err != nil {
		return nil, fmt.Errorf("purge log of %s: %w", name, err)
	}
	return out, l.states.waitUnsequenced(ctx, name)
}
