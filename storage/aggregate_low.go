package storage

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/blocks"
)

// lowCell holds the low level of a top-level block in memory once a batch or a
// reader has needed it; empty: only the store has it. Any goroutine may fill or
// empty it at any time: every batch that changes the low level gives the block
// another cell, so that all states that share a cell mean the same.
type lowCell struct{ atomic.Pointer[blocks.Low] }

// maxLowHeld is how many low blocks a store keeps in memory, more or less: a
// million documents, about 5 MB.
const maxLowHeld = 1 << 16

// writable returns the low blocks around id, to be changed by this batch, and
// which of them contains id. What is not in memory is read from the store as
// the batch before left it, so that must happen before this batch changes it.
func (a *aggregateEdit) writable(id string) (low *blocks.Low, k int, err error) {
	low = a.top.block(id).low.Load()
	if low == nil {
		if low, err = loadLow(a.db, a.top.topBlocks, id); err != nil {
			return nil, 0, err
		}
		a.states.lowHeld.Add(int64(len(low.Borders)))
	} else if _, own := a.own[low]; !own {
		low = low.Copyable()
	} else {
		return low, low.Find(id), nil
	}
	a.own[low] = struct{}{}
	a.top.setLow(id, low)
	return low, low.Find(id), nil
}

// loadLow reads the low blocks of the top-level block that contains id.
func loadLow(r pebble.Reader, docs *topBlocks, id string) (*blocks.Low, error) {
	next, _ := docs.next(id)
	return blocks.ReadLow(r, docs.border(id), next)
}

// low returns the low blocks around id.
func (s *Snapshot) low(id string) (*blocks.Low, error) {
	cell := s.state.docs.block(id).low
	if low := cell.Load(); low != nil {
		return low, nil
	}
	low, err := loadLow(s.snap, s.state.docs, id)
	if err != nil {
		return nil, err
	}
	if cell.CompareAndSwap(nil, low) {
		s.s.states.lowHeld.Add(int64(len(low.Borders)))
		s.s.states.limitLowBlocks(s.state.docs)
	}
	return low, nil
}

// limitLowBlocks drops low blocks from memory when too many are held.
func (s *states) limitLowBlocks(docs *topBlocks) {
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
			if held -= int64(len(low.Borders)); held <= maxLowHeld/2 {
				return held
			}
		}
	}
	return 0
}
