package storage

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Snapshot is a store at one moment, between two batches; later batches do not
// show in it. It pins the store until Close. Point reads and counts are safe
// for concurrent use; an iterator belongs to one goroutine and is closed before
// the snapshot.
//
// What it shows is applied, not necessarily durable: a caller that shows
// sequences to others first waits until Seq is.
type Snapshot struct {
	s     *Store
	snap  pebble.Reader // of that moment
	state *batchState
}

// Snapshot returns the store as the last applied batch left it.
func (s *Store) Snapshot() (*Snapshot, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	for {
		before := s.states.pair.Load()
		snap := s.read.moment()
		v, err := s.states.of(snap, before)
		if err != nil {
			return nil, errors.Join(err, snap.Close())
		}
		if v != nil {
			s.cache.pin(&s.handle)
			return &Snapshot{s: s, snap: snap, state: v}, nil
		}
		// Two batches were applied between the lines above; try again.
		if err := snap.Close(); err != nil {
			return nil, fmt.Errorf("close snapshot: %w", err)
		}
	}
}

// Close gives the snapshot and its pin back. It may be called once.
func (s *Snapshot) Close() error {
	err := s.snap.Close()
	s.s.cache.release(&s.s.handle)
	return err
}

// Store returns the store.
func (s *Snapshot) Store() *Store { return s.s }

// Seq returns the last applied update sequence of the moment.
func (s *Snapshot) Seq() uint64 { return s.state.counters.Seq }

// Counters returns the totals of the moment.
func (s *Snapshot) Counters() Counters { return s.state.counters }

// Record is Reader.Record of the moment.
func (s *Snapshot) Record(id string) (rec doc.Record, ok bool, err error) {
	if err := s.s.Err(); err != nil {
		return rec, false, err
	}
	return records.Get(s.snap, id)
}

// Tip is Reader.Tip of the moment.
func (s *Snapshot) Tip(id string) (rec doc.Record, ok bool, err error) {
	if err := s.s.Err(); err != nil {
		return rec, false, err
	}
	return records.GetTip(s.snap, id)
}

// Head is Reader.Head of the moment.
func (s *Snapshot) Head(id string, h *doc.Head) (ok bool, err error) {
	if err := s.s.Err(); err != nil {
		return false, err
	}
	return records.Head(s.snap, id, h)
}

// Revision is Reader.Revision of the moment.
func (s *Snapshot) Revision(id string, rev doc.Rev) (v doc.Revision, ok bool, err error) {
	if err := s.s.Err(); err != nil {
		return v, false, err
	}
	return records.Revision(s.snap, id, rev)
}

// CountDocs returns how many live documents have an id below before. Its cost
// does not depend on their number: some ten microseconds.
func (s *Snapshot) CountDocs(before string) (uint64, error) {
	sums, err := s.sumsBefore(before)
	return uint64(sums.Live), err
}

// Sums returns the totals over the documents with lo <= id < hi, or all from lo
// on when hi is empty. External and Active are zero in a store that is not
// partitioned.
func (s *Snapshot) Sums(lo, hi string) (Sums, error) {
	if hi != "" && hi <= lo {
		return Sums{}, nil
	}
	below, err := s.sumsBefore(lo)
	if err != nil {
		return Sums{}, err
	}
	all := s.total()
	if hi != "" {
		if all, err = s.sumsBefore(hi); err != nil {
			return Sums{}, err
		}
	}
	all.Add(below.Neg())
	return all, nil
}

// total is the sums over every document.
func (s *Snapshot) total() Sums {
	c := &s.state.counters
	return s.s.states.kept(Sums{Live: int64(c.Live), Deleted: int64(c.Deleted), External: c.External, Active: c.Active})
}

// sumsBefore adds up top-level blocks, then low ones, then documents.
func (s *Snapshot) sumsBefore(id string) (Sums, error) {
	sums, border, err := s.blocksBefore(id)
	if err != nil || border == id {
		return sums, err
	}
	rest, err := s.s.states.sumDocs(s.snap, border, id, false)
	if err != nil {
		return Sums{}, err
	}
	sums.Add(rest)
	return sums, nil
}

// blocksBefore adds up the blocks that end at or before id and returns the
// border of the low one that contains it.
func (s *Snapshot) blocksBefore(id string) (sums Sums, border string, err error) {
	if err := s.s.Err(); err != nil || id == "" {
		return Sums{}, "", err
	}
	sums = s.state.docs.before(id)
	low, err := s.low(id)
	if err != nil {
		return Sums{}, "", err
	}
	within, border := low.Before(id)
	sums.Add(within)
	return sums, border, nil
}

// CountChanges returns how many entries of the sequence come after that one.
// Its cost does not depend on their number.
func (s *Snapshot) CountChanges(after uint64) (uint64, error) {
	if err := s.s.Err(); err != nil {
		return 0, err
	}
	c := &s.state.counters
	total := c.Live + c.Deleted // every document has one entry
	switch {
	case after == 0:
		return total, nil
	case after >= c.Seq:
		return 0, nil
	case c.Seq-after <= 1<<keyspace.LowShift:
		return countSeqs(s.snap, after+1, c.Seq+1)
	}
	first := after + 1
	border := keyspace.SeqBorder(first, keyspace.TopShift)
	sums := s.state.seqs.below(string(border[:])) // the block itself may have been removed
	upto, err := lowSeqs(s.snap, first)
	if err != nil {
		return 0, err
	}
	rest, err := countSeqs(s.snap, first>>keyspace.LowShift<<keyspace.LowShift, first)
	if err != nil {
		return 0, err
	}
	return total - uint64(sums.Live) - upto - rest, nil
}

// lowSeqs counts the entries in the low-level blocks before the one of seq,
// inside its top-level block.
func lowSeqs(r pebble.Reader, seq uint64) (uint64, error) {
	lo, hi := keyspace.SeqBorder(seq, keyspace.TopShift), keyspace.SeqBorder(seq, keyspace.LowShift)
	var sums Sums
	err := records.Each(r, keyspace.AppendAgg(nil, keyspace.AggSeqs, keyspace.LevelLow, string(lo[:])), keyspace.AppendAgg(nil, keyspace.AggSeqs, keyspace.LevelLow, string(hi[:])),
		func(_, value []byte) error {
			one, err := format.DecodeSums(value)
			sums.Add(one)
			return err
		})
	if err != nil {
		return 0, fmt.Errorf("read aggregates: %w", err)
	}
	return uint64(sums.Live), nil
}

// countSeqs counts the entries from lo to hi, hi excluded, by reading them.
func countSeqs(r pebble.Reader, lo, hi uint64) (n uint64, err error) {
	if lo >= hi {
		return 0, nil
	}
	err = records.Each(r, keyspace.AppendSeq(nil, lo), keyspace.AppendSeq(nil, hi), func(_, _ []byte) error {
		n++
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("count changes: %w", err)
	}
	return n, nil
}
