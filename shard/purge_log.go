package shard

import (
	"errors"
	"fmt"
	"slices"

	"divan/storage"
	"divan/storage/doc"
)

// purgeIndex is an index of the purge log of a copy, for its writer: it
// knows a purge that has been done, and the purges of a document. It is read
// when it is first needed and goes with the writer; entries that compaction
// dropped meanwhile may stay.
type purgeIndex struct {
	newest map[[16]byte]uint64   // by uuid: the purge sequence of its newest entry
	byID   map[string][][16]byte // by document: its purges
}

func (p *purgeIndex) load(store *storage.Store) error {
	if p.newest != nil {
		return nil
	}
	it, err := store.Purges(0)
	if err != nil {
		return fmt.Errorf("purge log: %w", err)
	}
	set := purgeIndex{newest: make(map[[16]byte]uint64), byID: make(map[string][][16]byte)}
	for ok := it.First(); ok; ok = it.Next() {
		e := it.Purge()
		set.note(&e)
	}
	if err = errors.Join(it.Err(), it.Close()); err != nil {
		return fmt.Errorf("purge log: %w", err)
	}
	*p = set
	return nil
}

func (p *purgeIndex) note(e *storage.Purge) {
	if _, known := p.newest[e.UUID]; !known {
		p.byID[e.ID] = append(p.byID[e.ID], e.UUID)
	}
	p.newest[e.UUID] = e.Seq
}

func (p *purgeIndex) reset() { *p = purgeIndex{} }

// purgeLog is the purge log as a task sees it: what is stored, what the
// group adds, and what the task itself would add.
type purgeLog struct {
	group *groupCommit
	index *purgeIndex
	added []storage.Purge // entries of the task; without sequences
}

// done reports whether a purge has been done by an earlier task.
func (log *purgeLog) done(uuid [16]byte) bool {
	_, ok := log.index.newest[uuid]
	return ok
}

// entry returns the newest entry of a purge; false when there is none (any
// more).
func (log *purgeLog) entry(uuid [16]byte) (storage.Purge, bool, error) {
	for i := len(log.added) - 1; i >= 0; i-- {
		if log.added[i].UUID == uuid {
			return log.added[i], true, nil
		}
	}
	seq, ok := log.index.newest[uuid]
	if !ok {
		return storage.Purge{}, false, nil
	}
	if staged := log.group.purges; len(staged) > 0 && seq >= staged[0].Seq {
		return staged[seq-staged[0].Seq], true, nil
	}
	it, err := log.group.store.Purges(seq - 1)
	if err != nil {
		return storage.Purge{}, false, fmt.Errorf("purge log: %w", err)
	}
	var e storage.Purge
	found := it.First() && it.Purge().Seq == seq
	if found {
		e = it.Purge()
	}
	if err = errors.Join(it.Err(), it.Close()); err != nil {
		return storage.Purge{}, false, fmt.Errorf("purge log: %w", err)
	}
	return e, found, nil
}

// add notes an entry of the task; keep makes all of them the group's.
func (log *purgeLog) add(e storage.Purge) { log.added = append(log.added, e) }

func (log *purgeLog) keep() {
	for _, e := range log.added {
		e.Seq = log.group.nextPurge()
		log.group.purges = append(log.group.purges, e)
		log.index.note(&e)
	}
}

// purgedSince reports whether one of the documents of some edits was purged
// after a purge sequence.
func (g *groupCommit) purgedSince(seen uint64, edits []Edit) (bool, error) {
	if g.lastPurge() <= seen {
		return false, nil
	}
	ids := make(map[string]struct{}, len(edits))
	for i := range edits {
		ids[edits[i].ID] = struct{}{}
	}
	for i := range g.purges {
		if _, ok := ids[g.purges[i].ID]; ok && g.purges[i].Seq > seen {
			return true, nil
		}
	}
	it, err := g.store.Purges(seen)
	if err != nil {
		return false, fmt.Errorf("purge log: %w", err)
	}
	found := false
	for ok := it.First(); ok && !found; ok = it.Next() {
		_, found = ids[it.Purge().ID]
	}
	if err = errors.Join(it.Err(), it.Close()); err != nil {
		return false, fmt.Errorf("purge log: %w", err)
	}
	return found, nil
}

// purgedEdits returns the revisions, by the place of their edit, that have been
// purged: the request may be older than the purge. made tells which revision an edit
// makes; false: none. nil: there are none.
func (g *groupCommit) purgedEdits(edits []Edit, made func(i int) (doc.Rev, bool)) (map[int]doc.Rev, error) {
	if c := g.store.Counters(); g.lastPurge() == c.PurgeTrimmed {
		return nil, nil
	}
	var purged map[int]doc.Rev
	log := purgeLog{group: g, index: &g.copy.purged}
	for i := range edits {
		e := &edits[i]
		rev, ok := made(i)
		if !ok || doc.IsLocal(e.ID) {
			continue
		}
		if err := log.index.load(g.store); err != nil {
			return nil, err
		}
		for _, uuid := range log.index.byID[e.ID] {
			p, found, err := log.entry(uuid)
			if err != nil {
				return nil, err
			}
			if found && purgedBy(&p, rev) {
				if purged == nil {
					purged = make(map[int]doc.Rev)
				}
				purged[i] = rev
			}
		}
	}
	return purged, nil
}

// withSiblings adds the other edits of the same documents.
func withSiblings(edits []Edit, purged map[int]doc.Rev) {
	byID := make(map[string]doc.Rev, len(purged))
	for i, rev := range purged {
		byID[edits[i].ID] = rev
	}
	for i := range edits {
		if rev, ok := byID[edits[i].ID]; ok {
			purged[i] = rev
		}
	}
}

// purgedBy reports whether an entry requested a revision or knows it to be purged.
func purgedBy(p *storage.Purge, r doc.Rev) bool {
	return slices.Contains(p.Revs, r) || slices.ContainsFunc(p.Paths, func(path doc.Path) bool {
		at := path.Start - r.Pos
		return r.Pos <= path.Start && at < uint64(len(path.IDs)) && path.IDs[at] == r.ID
	})
}
