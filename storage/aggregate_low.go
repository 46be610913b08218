package storage

import (
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// lowBlocks is the low level of one top-level block of documents in memory:
// low borders, sorted, the top border itself first, and the sums of each block.
// One that a batchState holds is immutable; a batch that changes it makes its own.
//
// The writer needs the borders, and readers are spared the merge operands that
// the entries in the store consist of until they are compacted.
type lowBlocks struct {
	borders []string
	sums    []Sums
}

// lowCell is where the low level of a top-level block stands once somebody has
// needed it; empty: only the store knows. It may be filled and emptied by
// anybody at any time: every batch that changes the low level gives the block
// another cell, so that the states that share one mean the same.
type lowCell struct{ atomic.Pointer[lowBlocks] }

// maxLowHeld is how many low blocks a store keeps in memory, more or less: a
// million documents, about 5 MB.
const maxLowHeld = 1 << 16

// find returns which block contains id.
func (l *lowBlocks) find(id string) int {
	return sort.Search(len(l.borders), func(i int) bool { return l.borders[i] > id }) - 1
}

// before returns the sums of all blocks that end at or before id, and the
// border of the block that contains it.
func (l *lowBlocks) before(id string) (sums Sums, border string) {
	k := l.find(id)
	for i := range k {
		sums.Add(l.sums[i])
	}
	return sums, l.borders[k]
}

// copyable returns a copy whose sums may be changed; the borders are shared
// until insert.
func (l *lowBlocks) copyable() *lowBlocks {
	return &lowBlocks{slices.Clip(l.borders), slices.Clone(l.sums)}
}

// insert opens a block as number i.
func (l *lowBlocks) insert(i int, border string, sums Sums) {
	borders := make([]string, 0, len(l.borders)+8)
	borders = append(append(borders, l.borders[:i]...), border)
	l.borders = append(borders, l.borders[i:]...)
	l.sums = slices.Insert(l.sums, i, sums)
}

// cut leaves the blocks before number i and returns those from there on, with
// their total.
func (l *lowBlocks) cut(i int) (right *lowBlocks, total Sums) {
	right = &lowBlocks{slices.Clone(l.borders[i:]), slices.Clone(l.sums[i:])}
	for _, s := range right.sums {
		total.Add(s)
	}
	l.borders, l.sums = slices.Clone(l.borders[:i]), slices.Clone(l.sums[:i])
	return right, total
}

// writable returns the low blocks around id, to be changed by this batch, and
// which of them contains id. What is not in memory is read from the store as
// the batch before left it, so that must happen before this batch changes it.
func (a *aggregateEdit) writable(id string) (low *lowBlocks, k int, err error) {
	low = a.top.block(id).low.Load()
	if low == nil {
		if low, err = loadLow(a.db, a.top.topBlocks, id); err != nil {
			return nil, 0, err
		}
		a.s.lowHeld.Add(int64(len(low.borders)))
	} else if _, own := a.own[low]; !own {
		low = low.copyable()
	} else {
		return low, low.find(id), nil
	}
	a.own[low] = struct{}{}
	a.top.setLow(id, low)
	return low, low.find(id), nil
}

// loadLow reads the low blocks of the top-level block that contains id.
func loadLow(r pebble.Reader, docs *topBlocks, id string) (*lowBlocks, error) {
	top := docs.border(id)
	end := keyspace.AppendAgg(nil, keyspace.AggDocs, keyspace.LevelLow+1, "")
	if next, ok := docs.next(id); ok {
		end = keyspace.AppendAgg(nil, keyspace.AggDocs, keyspace.LevelLow, next)
	}
	low := &lowBlocks{borders: []string{top}, sums: make([]Sums, 1)}
	err := records.Each(r, keyspace.AppendAgg(nil, keyspace.AggDocs, keyspace.LevelLow, top), end, func(key, value []byte) error {
		s, err := format.DecodeSums(value)
		if border := string(keyspace.AggBorder(key)); border == top {
			low.sums[0] = s
		} else {
			low.borders, low.sums = append(low.borders, border), append(low.sums, s)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read aggregates: %w", err)
	}
	return low, nil
}

// low returns the low blocks around id.
func (s *Snapshot) low(id string) (*lowBlocks, error) {
	cell := s.state.docs.block(id).low
	if low := cell.Load(); low != nil {
		return low, nil
	}
	low, err := loadLow(s.snap, s.state.docs, id)
	if err != nil {
		return nil, err
	}
	if cell.CompareAndSwap(nil, low) {
		s.s.lowHeld.Add(int64(len(low.borders)))
		s.s.limitLowBlocks(s.state.docs)
	}
	return low, nil
}

// limitLowBlocks drops low blocks from memory when too many are held.
func (s *Store) limitLowBlocks(docs *topBlocks) {
	if held := s.lowHeld.Load(); held > maxLowHeld {
		s.lowHeld.Store(docs.dropLow(held))
	}
}

// dropLow drops low blocks from memory until half of the limit is held, and
// returns how many are left.
func (s *topBlocks) dropLow(held int64) int64 {
	for _, ch := range s.chunks {
		for i := range ch.blocks {
			low := ch.blocks[i].low.Swap(nil)
			if low == nil {
				continue
			}
			if held -= int64(len(low.borders)); held <= maxLowHeld/2 {
				return held
			}
		}
	}
	return 0
}
