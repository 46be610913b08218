// Package ring holds the pure rules that say where a document lives: the hash
// of its id, the cut of the ring in ranges, the placement of copies on nodes,
// and the names of copies and databases. It knows no clock, no disk and no
// network; everything random or dated is a parameter.
//
// The arithmetic is CouchDB's (mem3_util:create_partition_map), because ranges
// and copy names are visible through the API.
package ring

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
)

// MaxQ is the largest number of ranges a database may have. Each range is a
// store with files of its own, so an absurd number is refused at once; up
// to here CouchDB's arithmetic cuts exactly q ranges.
const MaxQ = 1024

// Hash returns the place of a document on the ring: the CRC-32 (IEEE) of its
// id. In a partitioned database the partition alone counts (the text before
// the first colon), except for ids that start with an underscore.
func Hash(id string, partitioned bool) uint32 {
	if partitioned && !strings.HasPrefix(id, "_") {
		if i := strings.IndexByte(id, ':'); i >= 0 {
			id = id[:i]
		}
	}
	return checksum(id)
}

// checksum is crc32.ChecksumIEEE of a string. Handing the bytes to package
// crc32 would cost a copy on the heap; ids are short, so a plain loop wins.
func checksum(s string) uint32 {
	crc := ^uint32(0)
	for i := range len(s) {
		crc = crc32.IEEETable[byte(crc)^s[i]] ^ crc>>8
	}
	return ^crc
}

// Range is a closed interval of the ring.
type Range struct {
	Begin, End uint32 // both belong to the range
}

// Full is the whole ring.
func Full() Range { return Range{Begin: 0, End: 1<<32 - 1} }

// String returns the range as it appears in the API: "00000000-7fffffff".
func (r Range) String() string { return string(r.AppendText(make([]byte, 0, rangeLen))) }

const (
	rangeLen = 17
	hexDigit = "0123456789abcdef"
)

// AppendText appends String to dst.
func (r Range) AppendText(dst []byte) []byte {
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigit[r.Begin>>shift&15])
	}
	dst = append(dst, '-')
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigit[r.End>>shift&15])
	}
	return dst
}

// Contains reports whether a hash falls in the range.
func (r Range) Contains(hash uint32) bool { return r.Begin <= hash && hash <= r.End }

// ParseRange is the inverse of Range.String. It takes lower-case digits only,
// so that each range has one spelling.
func ParseRange(s string) (Range, error) {
	if len(s) != rangeLen || s[8] != '-' {
		return Range{}, fmt.Errorf("range %q: want hhhhhhhh-hhhhhhhh", s)
	}
	var ends [2]uint32
	for i, part := range [2]string{s[:8], s[9:]} {
		for _, c := range []byte(part) {
			d := strings.IndexByte(hexDigit, c)
			if d < 0 {
				return Range{}, fmt.Errorf("range %q: %q is no lower-case hexadecimal digit", s, c)
			}
			ends[i] = ends[i]<<4 | uint32(d)
		}
	}
	if ends[0] > ends[1] {
		return Range{}, fmt.Errorf("range %q begins after its end", s)
	}
	return Range{Begin: ends[0], End: ends[1]}, nil
}

// Split cuts the ring in q ranges of equal width, the last one taking what the
// division leaves over. q must be in 1…MaxQ; otherwise Split returns nil.
func Split(q int) []Range {
	if q < 1 || q > MaxQ {
		return nil
	}
	width := uint64(1<<32) / uint64(q)
	out := make([]Range, q)
	for i := range out {
		begin := uint64(i) * width
		out[i] = Range{Begin: uint32(begin), End: uint32(begin + width - 1)}
	}
	out[q-1].End = 1<<32 - 1
	return out
}

// Complete returns all ranges of the database that has these, nil when there can
// be no such database. Of ranges that overlap, as while one is split, those are taken that
// cover the ring, the longest first. What is missing is guessed: all ranges of one have the
// same size.
func Complete(some []Range) []Range {
	slices.SortFunc(some, func(a, b Range) int { return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(b.End, a.End)) })
	if all := cover(some, 0); all != nil {
		return all
	}
	size := uint64(some[0].End) - uint64(some[0].Begin) + 1
	for q := max(1<<32/size, 1); q <= 1<<32/size+1 && q <= MaxQ; q++ {
		all := Split(int(q))
		if !slices.ContainsFunc(some, func(r Range) bool { return !slices.Contains(all, r) }) {
			return all
		}
	}
	return nil
}

// cover returns those of sorted ranges that cover the ring from a point on, nil when none do.
func cover(sorted []Range, from uint32) []Range {
	at, _ := slices.BinarySearchFunc(sorted, from, func(r Range, from uint32) int { return cmp.Compare(r.Begin, from) })
	for ; at < len(sorted) && sorted[at].Begin == from; at++ {
		if sorted[at].End == Full().End {
			return []Range{sorted[at]}
		}
		if rest := cover(sorted[at+1:], sorted[at].End+1); rest != nil {
			return append([]Range{sorted[at]}, rest...)
		}
	}
	return nil
}

// State is the state of a copy in its range.
type State uint8

// The states (docs/decisions/0040-splitting.md). Only a full copy answers.
const (
	StateFull    State = iota // it holds what was written to its range
	StateJoining              // it takes all that is written and is filled from the others
	StateCopying              // it is made from another copy of its node, and takes nothing else
	StateLeaving              // others have its role; it pushes to them what it alone has
	StateGone                 // it is in the map no more: only what a change aims at
)

// String returns the state as the API shows it.
func (s State) String() string {
	names := [...]string{"full", "joining", "copying", "leaving", "gone"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", s)
}

// Used reports whether coordinators know a copy in that state: it gets what is written.
func (s State) Used() bool { return s == StateFull || s == StateJoining }

// Copy is one copy of a range: an entry of the map of its database.
type Copy struct {
	ID    uint64 // unique among all copies that the database ever had; 0: copies have none yet
	Node  string // that holds it
	State State
	// Instead is the node whose copy of the same range this one comes instead of, until that leaves; empty: of none.
	Instead string
}

// Shard is one range of a database with its copies.
type Shard struct {
	Range
	Copies []Copy // the first one leads; never empty in a database's map
}

// CopiesOn returns full copies without ids, one on each node.
func CopiesOn(nodes ...string) []Copy {
	out := make([]Copy, len(nodes))
	for i, n := range nodes {
		out[i].Node = n
	}
	return out
}

// Nodes returns the names of the nodes that hold the copies, in their order.
func (s Shard) Nodes() []string {
	out := make([]string, len(s.Copies))
	for i := range s.Copies {
		out[i] = s.Copies[i].Node
	}
	return out
}

// Full returns the full copies, in their order.
func (s Shard) Full() []Copy {
	if !slices.ContainsFunc(s.Copies, func(c Copy) bool { return c.State != StateFull }) {
		return s.Copies
	}
	out := make([]Copy, 0, len(s.Copies))
	for _, c := range s.Copies {
		if c.State == StateFull {
			out = append(out, c)
		}
	}
	return out
}

// On reports whether node holds a copy.
func (s Shard) On(node string) bool { return s.at(node) >= 0 }

// CopyOn returns the copy that a node holds; false when it holds none.
func (s Shard) CopyOn(node string) (Copy, bool) {
	if i := s.at(node); i >= 0 {
		return s.Copies[i], true
	}
	return Copy{}, false
}

// at returns the place of the copy of a node, -1 when it holds none.
func (s Shard) at(node string) int {
	return slices.IndexFunc(s.Copies, func(c Copy) bool { return c.Node == node })
}

// Covers reports whether the shards, sorted by Begin, cover the ring without
// gap or overlap, each with at least one copy and no node twice.
func Covers(shards []Shard) bool {
	next := uint64(0)
	for _, s := range shards {
		if uint64(s.Begin) != next || s.Begin > s.End || len(s.Copies) == 0 {
			return false
		}
		for i, c := range s.Copies {
			if s.at(c.Node) != i {
				return false
			}
		}
		next = uint64(s.End) + 1
	}
	return next == 1<<32
}
