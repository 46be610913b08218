// Package blocks counts documents by ranges of their ids.
package blocks

import (
	"slices"
	"sort"

	"divan/storage/format"
)

// Low is the low level of one top-level block of documents in memory:
// low borders, sorted, the top border itself first, and the sums of each block.
// One that is held is immutable; a batch that changes it makes its own.
//
// The writer needs the borders, and readers are spared the merge operands that
// the entries in the store consist of until they are compacted.
type Low struct {
	Borders []string
	Sums    []format.Sums
}

// Find returns which block contains id.
func (l *Low) Find(id string) int {
	return sort.Search(len(l.Borders), func(i int) bool { return l.Borders[i] > id }) - 1
}

// Before returns the sums of all blocks that end at or before id, and the
// border of the block that contains it.
func (l *Low) Before(id string) (sums format.Sums, border string) {
	k := l.Find(id)
	for i := range k {
		sums.Add(l.Sums[i])
	}
	return sums, l.Borders[k]
}

// Copyable returns a copy whose sums may be changed; the borders are shared
// until Insert.
func (l *Low) Copyable() *Low {
	return &Low{slices.Clip(l.Borders), slices.Clone(l.Sums)}
}

// Insert opens a block as number i.
func (l *Low) Insert(i int, border string, sums format.Sums) {
	borders := make([]string, 0, len(l.Borders)+8)
	borders = append(append(borders, l.Borders[:i]...), border)
	l.Borders = append(borders, l.Borders[i:]...)
	l.Sums = slices.Insert(l.Sums, i, sums)
}

// Cut leaves the blocks before number i and returns those from there on, with
// their total.
func (l *Low) Cut(i int) (right *Low, total format.Sums) {
	right = &Low{slices.Clone(l.Borders[i:]), slices.Clone(l.Sums[i:])}
	for _, s := range right.Sums {
		total.Add(s)
	}
	l.Borders, l.Sums = slices.Clone(l.Borders[:i]), slices.Clone(l.Sums[:i])
	return right, total
}
