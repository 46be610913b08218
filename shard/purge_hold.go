package shard

import (
	"encoding/json"
	"errors"
	"fmt"

	"divan/storage"
)

// PurgePrefix begins the ids of the local documents that hold the log of
// purges of a copy: whoever has to follow the log (another copy, an index)
// keeps one there that says how far it is. Compaction drops no entry that one
// of them has not passed; when the follower is gone for good, its document has
// to go with it (semantics.md section 15).
const PurgePrefix = localPrefix + "purge-"

// PurgeCheckpoint is what compaction reads of such a document.
type PurgeCheckpoint struct {
	PurgeSeq *uint64 `json:"purge_seq"` // the last entry that was dealt with; nil: it holds nothing
}

// keepPurges returns how many of the newest entries of the log have to stay:
// limit, or as many as the follower that is furthest behind has to read.
func keepPurges(store *storage.Store, limit uint64) (keep uint64, err error) {
	last := store.Counters().PurgeSeq
	if last <= limit {
		return limit, nil
	}
	snap, err := store.Snapshot()
	if err != nil {
		return 0, fmt.Errorf("followers of the log of purges: %w", err)
	}
	defer func() { _ = snap.Close() }() // read only: nothing to lose
	it, err := snap.Locals(storage.Range{Lo: PurgePrefix, Hi: prefixEnd(PurgePrefix)})
	if err != nil {
		return 0, fmt.Errorf("followers of the log of purges: %w", err)
	}
	keep = limit
	for ok := it.First(); ok; ok = it.Next() {
		d, bad := decodeLocal(string(it.ID()), it.Value())
		var c PurgeCheckpoint
		if bad != nil || json.Unmarshal(d.Body, &c) != nil || c.PurgeSeq == nil {
			continue
		}
		keep = max(keep, last-min(*c.PurgeSeq, last))
	}
	if err := errors.Join(it.Err(), it.Close()); err != nil {
		return 0, fmt.Errorf("followers of the log of purges: %w", err)
	}
	return keep, nil
}

// prefixEnd returns the first id behind all that begin with a prefix.
func prefixEnd(prefix string) string {
	return prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
}
