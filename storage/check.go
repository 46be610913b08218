package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"divan/storage/check"
	"divan/storage/instance"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Check reads the whole store and reports every broken invariant, on the disk (package check) and
// between the disk and what is in memory. Edits may go on; what is checked is one moment. The
// error is that of reading or of ctx, not that of what was found.
func (s *Store) Check(ctx context.Context, report func(problem string)) error {
	snap, err := s.Snapshot()
	if err != nil {
		return err
	}
	found, err := check.Run(ctx, check.Options{
		Reader: snap.snap, Counters: snap.Counters(), Kept: s.states.kept, Report: report,
	})
	if err == nil {
		c := &checker{snap: snap, report: report}
		err = c.checkTotals(found)
	}
	return errors.Join(err, snap.Close())
}

// GivenUp returns what opening the store gave up of its log, which a loss of power
// explains and damage as well; nil when that was nothing.
func (s *Store) GivenUp() *instance.GivenUp { return s.inst.GivenUp() }

// checker compares what is in memory of a moment with what is on the disk.
type checker struct {
	snap   *Snapshot
	report func(problem string)
}

func (c *checker) problemf(format string, args ...any) { c.report(fmt.Sprintf(format, args...)) }

// checkTotals compares the counters, stored and in memory, and the top level in
// memory with what was found.
func (c *checker) checkTotals(want Counters) error {
	have := c.snap.Counters()
	if have != want {
		c.problemf("counters are %+v, the documents give %+v", have, want)
	}
	batch, stored, err := records.Counters(c.snap.snap)
	if err != nil {
		return err
	}
	if stored != have || batch != c.snap.state.batch {
		c.problemf("counters on disk are %+v of batch %d, in memory %+v of batch %d", stored, batch, have, c.snap.state.batch)
	}
	for kind, memory := range map[byte]*topBlocks{keyspace.AggDocs: c.snap.state.docs, keyspace.AggSeqs: c.snap.state.seqs} {
		disk, err := loadTopBlocks(c.snap.snap, kind)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(disk.list(), memory.list(), block.same) {
			c.problemf("aggregate %c on disk differs from the one in memory", kind)
		}
	}
	return errors.Join(c.checkLow(), c.checkLast())
}

// checkLast looks for documents above the last id.
func (c *checker) checkLast() error {
	last, err := records.LastID(c.snap.snap)
	if err == nil && last > c.snap.state.last {
		c.problemf("document %q is above %q, the last id in memory", last, c.snap.state.last)
	}
	return err
}

// checkLow compares the low blocks that are in memory with the store.
func (c *checker) checkLow() error {
	docs := c.snap.state.docs
	for _, b := range docs.list() {
		held := b.low.Load()
		if held == nil {
			continue
		}
		disk, err := loadLow(c.snap.snap, docs, b.border)
		if err != nil {
			return err
		}
		if !slices.Equal(disk.Borders, held.Borders) || !slices.Equal(disk.Sums, held.Sums) {
			c.problemf("low blocks of documents from %q on differ on disk and in memory", b.border)
		}
	}
	return nil
}

// list returns all blocks in order.
func (s *topBlocks) list() []block {
	var out []block
	for _, ch := range s.chunks {
		out = append(out, ch.blocks...)
	}
	return out
}
