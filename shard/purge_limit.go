package shard

import (
	"encoding/json"
	"errors"
	"fmt"

	"divan/storage"
)

// PurgePrefix begins the ids of the local documents that hold the log of purges
// of a copy: each follower of the log (another copy, an index) keeps one there
// that says how far it is. Compaction drops no entry that a follower has not
// passed; when the follower is gone for good, its document has to go with it
// (semantics.md section 15).
const PurgePrefix = localPrefix + "purge-"

// PurgeCheckpoint is the part of such a document that compaction reads.
type PurgeCheckpoint struct {
	PurgeSeq *uint64 `json:"purge_seq"` // the last entry that was dealt with; nil: it holds nothing
}

// purgesToTrim returns the last entry of the log that may go, 0 for none: the
// newest limit of them stay, and all that a follower still has to read. The
// answer holds until the log or its followers change, so the writer asks: a
// compaction takes long, and purges go on meanwhile.
func purgesToTrim(store *storage.Store, limit uint64) (upto uint64, err error) {
	last := store.Counters().PurgeSeq
	if last <= limit {
		return 0, nil
	}
	snap, err := store.Snapshot()
	if err != nil {
		return 0, fmt.Errorf("followers of the purge log: %w", err)
	}
	defer func() { _ = snap.Close() }() // read only: nothing to lose
	it, err := snap.Locals(storage.Range{Lo: PurgePrefix, Hi: prefixEnd(PurgePrefix)})
	if err != nil {
		return 0, fmt.Errorf("followers of the purge log: %w", err)
	}
	upto = last - limit
	for ok := it.First(); ok; ok = it.Next() {
		d, bad := decodeLocal(string(it.ID()), it.Value())
		var c PurgeCheckpoint
		if bad != nil || json.Unmarshal(d.Body, &c) != nil || c.PurgeSeq == nil {
			continue
		}
		upto = min(upto, *c.PurgeSeq)
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		return 0, fmt.Errorf("followers of the purge log: %w", err)
	}
	return upto, nil
}

// prefixEnd returns the first id behind all that begin with a prefix.
func prefixEnd(prefix string) string {
	return prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
}
