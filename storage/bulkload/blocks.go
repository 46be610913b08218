package bulkload

import (
	"divan/storage/format"
	"divan/storage/keyspace"
)

// Block is a block of the top level of an aggregate.
type Block struct {
	Border string
	Sums   format.Sums
}

// blocks counts documents or sequences that come in ascending order.
type blocks struct {
	out      *stream
	kind     byte
	low, top Block
	done     []Block // of the top level
	key, val []byte
}

// add counts one; low and top say that a block begins there.
func (b *blocks) add(sums format.Sums) {
	b.low.Sums.Add(sums)
	b.top.Sums.Add(sums)
}

// beginLow begins a block of the low level.
func (b *blocks) beginLow(border string) {
	b.put(keyspace.LevelLow, &b.low)
	b.low = Block{Border: border}
}

// beginTop begins a block of the top level.
func (b *blocks) beginTop(border string) {
	b.endTop()
	b.top = Block{Border: border}
}

func (b *blocks) endTop() {
	if b.top.Border != "" || !b.top.Sums.IsZero() {
		b.done = append(b.done, b.top)
	}
}

// end writes what is left.
func (b *blocks) end() {
	b.put(keyspace.LevelLow, &b.low)
	b.endTop()
	for i := range b.done {
		b.put(keyspace.LevelTop, &b.done[i])
	}
}

// put writes a block. An entry with zero sums marks a border; the first block needs none.
func (b *blocks) put(level byte, of *Block) {
	if of.Border == "" && of.Sums.IsZero() {
		return
	}
	b.key = keyspace.AppendAgg(b.key[:0], b.kind, level, of.Border)
	b.val = format.AppendSums(b.val[:0], of.Sums)
	b.out.put(b.key, b.val)
}
