package storage

import (
	"fmt"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/blocks"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// topBlocks is the top level of an aggregate in memory: blocks in the order of
// their borders, each with the sums of what lies between its border and the
// next. It is immutable, so that a snapshot keeps the one of its moment; an
// edit copies the chunks it touches and shares the rest. There is always a
// block with the empty border.
//
// A block stands for about 2048 documents or exactly 65536 sequences, so a
// hundred million documents are 49,000 blocks, 4 MB.
type topBlocks struct{ chunks []*chunk }

// chunk is a run of blocks with their total; chunks are never empty.
type chunk struct {
	blocks []block
	total  Sums
}

type block struct {
	border string
	sums   Sums
	low    *lowCell // what the block consists of
}

// same reports whether two blocks stand for the same documents and sums,
// regardless of their low levels in memory.
func (b block) same(o block) bool { return b.border == o.border && b.sums == o.sums }

// maxChunk is the number of blocks at which a chunk is cut in two.
const maxChunk = 64

func newTopBlocks() *topBlocks {
	return &topBlocks{chunks: []*chunk{{blocks: []block{{low: new(lowCell)}}}}}
}

// loadTopBlocks reads the top level of one kind from the store.
func loadTopBlocks(r pebble.Reader, kind byte) (*topBlocks, error) {
	e := newTopBlocks().edit()
	err := records.Each(r, keyspace.AppendAgg(nil, kind, keyspace.LevelTop, ""), keyspace.AppendAgg(nil, kind, keyspace.LevelTop+1, ""),
		func(key, value []byte) error {
			sums, err := format.DecodeSums(value)
			border := string(keyspace.AggBorder(key))
			if border != "" {
				e.insert(border)
			}
			e.add(border, sums)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("load aggregates: %w", err)
	}
	return e.topBlocks, nil
}

// find returns where the block that contains key is.
func (s *topBlocks) find(key string) (c, b int) {
	c = sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].blocks[0].border > key }) - 1
	blocks := s.chunks[c].blocks
	b = sort.Search(len(blocks), func(i int) bool { return blocks[i].border > key }) - 1
	return c, b
}

// before returns the sums of all blocks that end at or before key.
func (s *topBlocks) before(key string) Sums {
	var sums Sums
	c, b := s.find(key)
	for _, ch := range s.chunks[:c] {
		sums.Add(ch.total)
	}
	for i := range b {
		sums.Add(s.chunks[c].blocks[i].sums)
	}
	return sums
}

// below returns the sums of all blocks whose border is below key. Where no block
// lasts until the next one begins, as those of sequences do not once one is
// removed, and key is a border, opened or not, that is all that lies before it.
func (s *topBlocks) below(key string) Sums {
	sums := s.before(key)
	if last := s.block(key); last.border < key {
		sums.Add(last.sums)
	}
	return sums
}

// border returns the border of the block that contains key.
func (s *topBlocks) border(key string) string {
	c, b := s.find(key)
	return s.chunks[c].blocks[b].border
}

// next returns the border after the block that contains key; ok is false when
// that is the last.
func (s *topBlocks) next(key string) (border string, ok bool) {
	c, b := s.find(key)
	if b+1 < len(s.chunks[c].blocks) {
		return s.chunks[c].blocks[b+1].border, true
	}
	if c+1 < len(s.chunks) {
		return s.chunks[c+1].blocks[0].border, true
	}
	return "", false
}

// live returns where a reader that stands at key finds the next block with live
// documents, upward or downward: at key itself when they may be in its own block,
// at the border where that block begins, or ends. ok is false when there is none.
func (s *topBlocks) live(key string, down bool) (at string, ok bool) {
	c, b := s.find(key)
	if s.chunks[c].blocks[b].sums.Live > 0 {
		return key, true
	}
	if down {
		return s.liveBelow(c, b)
	}
	for ; c < len(s.chunks); c, b = c+1, 0 {
		if s.chunks[c].total.Live == 0 {
			continue
		}
		for _, blk := range s.chunks[c].blocks[b:] {
			if blk.sums.Live > 0 {
				return blk.border, true
			}
		}
	}
	return "", false
}

// liveBelow returns where the last block before number b of chunk c that has
// live documents ends.
func (s *topBlocks) liveBelow(c, b int) (end string, ok bool) {
	end = s.chunks[c].blocks[b].border
	for {
		for _, blk := range slices.Backward(s.chunks[c].blocks[:b]) {
			if blk.sums.Live > 0 {
				return end, true
			}
			end = blk.border
		}
		for c--; c >= 0 && s.chunks[c].total.Live == 0; c-- {
			end = s.chunks[c].blocks[0].border
		}
		if c < 0 {
			return "", false
		}
		b = len(s.chunks[c].blocks)
	}
}

// sums returns the sums of the block that contains key.
func (s *topBlocks) sums(key string) Sums { return s.block(key).sums }

// block returns the block that contains key; it must not be changed.
func (s *topBlocks) block(key string) *block {
	c, b := s.find(key)
	return &s.chunks[c].blocks[b]
}

// topBlocksEdit is a topBlocks being changed: chunks in own are its alone.
type topBlocksEdit struct {
	*topBlocks
	own map[*chunk]struct{}
}

// edit begins a changed copy of s.
func (s *topBlocks) edit() *topBlocksEdit {
	return &topBlocksEdit{&topBlocks{slices.Clone(s.chunks)}, map[*chunk]struct{}{}}
}

// writable returns chunk c, copied when it is shared.
func (e *topBlocksEdit) writable(c int) *chunk {
	ch := e.chunks[c]
	if _, own := e.own[ch]; !own {
		ch = &chunk{append(make([]block, 0, len(ch.blocks)+1), ch.blocks...), ch.total}
		e.own[ch] = struct{}{}
		e.chunks[c] = ch
	}
	return ch
}

// add changes the block that contains key.
func (e *topBlocksEdit) add(key string, d Sums) {
	c, b := e.find(key)
	ch := e.writable(c)
	ch.blocks[b].sums.Add(d)
	ch.total.Add(d)
}

// setLow sets what the block that contains key consists of.
func (e *topBlocksEdit) setLow(key string, low *blocks.Low) {
	c, b := e.find(key)
	cell := new(lowCell)
	cell.Store(low)
	e.writable(c).blocks[b].low = cell
}

// insert opens an empty block, unless there is one.
func (e *topBlocksEdit) insert(border string) {
	c, b := e.find(border)
	if e.chunks[c].blocks[b].border == border {
		return
	}
	ch := e.writable(c)
	ch.blocks = slices.Insert(ch.blocks, b+1, block{border: border, low: new(lowCell)})
	if len(ch.blocks) >= maxChunk {
		e.cut(c)
	}
}

// cut makes two chunks of one that the edit owns.
func (e *topBlocksEdit) cut(c int) {
	ch := e.chunks[c]
	half := len(ch.blocks) / 2
	right := &chunk{blocks: slices.Clone(ch.blocks[half:])}
	for i := range right.blocks {
		right.total.Add(right.blocks[i].sums)
	}
	clear(ch.blocks[half:])
	ch.blocks = ch.blocks[:half]
	ch.total.Add(right.total.Neg())
	e.own[right] = struct{}{}
	e.chunks = slices.Insert(e.chunks, c+1, right)
}

// remove drops the block with that border, which must hold nothing and not be
// the first.
func (e *topBlocksEdit) remove(border string) {
	c, b := e.find(border)
	ch := e.writable(c)
	ch.blocks = slices.Delete(ch.blocks, b, b+1)
	if len(ch.blocks) == 0 {
		delete(e.own, ch)
		e.chunks = slices.Delete(e.chunks, c, c+1)
	}
}
