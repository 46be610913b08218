package storage

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/keyspace"
	"divan/storage/records"
)

// states holds the totals and aggregates of a store in memory, as its last applied batch left them
// and, while one is being applied, as that one is going to. It is safe for concurrent use; batches
// are applied one after the other.
//
// Invariant T2: applied is the state after the last applied batch: counters and
// top-level aggregates in memory equal those in the store.
type states struct {
	partitioned bool // sizes are kept per range of ids
	pair        atomic.Pointer[statePair]
	lowHeld     atomic.Int64 // low blocks in memory, about
}

// batchState is the state that one batch left, immutable.
type batchState struct {
	batch    uint64 // number of the batch, from 1; 0 before the first
	counters Counters
	last     string     // no document has an id above; one with it may be gone
	docs     *topBlocks // top-level blocks of documents
	seqs     *topBlocks // top-level blocks of sequences, Live counts entries
	origins  []Origin   // the stores that this one continues, the newest first
}

// statePair is the state before and after the batch that is being applied; next is
// nil between batches.
type statePair struct{ prev, next *batchState }

// applied returns the state after the last applied batch.
func (s *states) applied() *batchState { return s.pair.Load().prev }

// set changes both states; next is nil between batches.
func (s *states) set(prev, next *batchState) { s.pair.Store(&statePair{prev: prev, next: next}) }

// load reads counters and top-level aggregates.
func (s *states) load(r pebble.Reader) error {
	v := &batchState{docs: newTopBlocks(), seqs: newTopBlocks()}
	var err error
	if v.batch, v.counters, err = records.Counters(r); err != nil {
		return err
	}
	if v.origins, err = records.Origins(r); err != nil {
		return err
	}
	if v.last, err = records.LastID(r); err != nil {
		return err
	}
	if v.docs, err = loadTopBlocks(r, keyspace.AggDocs); err != nil {
		return err
	}
	if v.seqs, err = loadTopBlocks(r, keyspace.AggSeqs); err != nil {
		return err
	}
	s.set(v, nil)
	return nil
}

// of finds the state that belongs to a Pebble snapshot, nil when it was too
// long ago. Nothing orders the two: when a batch was being applied, the number
// of the last one is read from the snapshot itself.
func (s *states) of(snap pebble.Reader, before *statePair) (*batchState, error) {
	after := s.pair.Load()
	if after == before && before.next == nil {
		return before.prev, nil
	}
	batch, _, err := records.Counters(snap)
	if err != nil {
		return nil, err
	}
	for _, v := range [...]*batchState{before.prev, before.next, after.prev, after.next} {
		if v != nil && v.batch == batch {
			return v, nil
		}
	}
	return nil, nil
}
