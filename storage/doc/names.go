package doc

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// nameCheck notes whether two members of an object may have the same name, while a scanner
// reads. It compares sums of names, those of the open objects on a stack: a text without
// duplicates is read once, and without memory of its own unless it is large.
type nameCheck struct {
	on    bool
	twice bool   // as far as sums tell
	base  int    // the first sum of the innermost object
	seen  uint64 // a filter of its sums
	count int    // of sums
	space [24]uint32
	more  []uint32 // in place of space once that is full
}

const (
	manyNames   = 128 // members of an object from which on duplicates are found by sorting
	levelSums   = 3   // what the stack has of an object around another one: base, and seen
	wordBytes   = 8
	sumPrime    = 0x9e3779b97f4a7c15
	sumRotation = 29
)

// nameSum mixes a name.
func nameSum(name []byte) uint32 {
	x := uint64(len(name))
	for ; len(name) >= wordBytes; name = name[wordBytes:] {
		x = bits.RotateLeft64((x^binary.LittleEndian.Uint64(name))*sumPrime, sumRotation)
	}
	for _, c := range name {
		x = x<<8 ^ x>>56 ^ uint64(c)
	}
	return uint32(x * sumPrime >> 32)
}

func (n *nameCheck) push(x uint32) {
	switch {
	case n.more != nil:
		n.more = append(n.more[:n.count], x)
	case n.count < len(n.space):
		n.space[n.count] = x
	default:
		n.more = append(append(make([]uint32, 0, 4*len(n.space)), n.space[:]...), x)
	}
	n.count++
}

func (n *nameCheck) sums() []uint32 {
	if n.more != nil {
		return n.more[:n.count]
	}
	return n.space[:n.count]
}

// open begins an object.
func (n *nameCheck) open() {
	if !n.on {
		return
	}
	n.push(uint32(n.base))
	n.push(uint32(n.seen))
	n.push(uint32(n.seen >> 32))
	n.base, n.seen = n.count, 0
}

// close ends an object.
func (n *nameCheck) close() {
	if !n.on {
		return
	}
	all := n.sums()
	if own := all[n.base:]; len(own) > manyNames {
		slices.Sort(own)
		for i := 1; i < len(own) && !n.twice; i++ {
			n.twice = own[i-1] == own[i]
		}
	}
	n.count = n.base - levelSums
	around := all[n.count:]
	n.base, n.seen = int(around[0]), uint64(around[1])|uint64(around[2])<<32
}

// add takes the name of a member; quoted is its text.
func (n *nameCheck) add(quoted []byte) {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = unquoted(quoted)
	}
	sum := nameSum(name)
	bit := uint64(1) << (sum % 64)
	if n.seen&bit != 0 && n.count-n.base < manyNames && !n.twice {
		n.twice = slices.Contains(n.sums()[n.base:], sum)
	}
	n.seen |= bit
	n.push(sum)
}

// lastMembers returns a JSON text, which must be well-formed, with only the last one of
// the members of an object that have the same name, at its place: what CouchDB reads.
func lastMembers(text []byte) []byte {
	u := uniter{scanner: scanner{src: text, drop: true}}
	u.any()
	slices.SortFunc(u.cuts, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out, at := make([]byte, 0, len(text)), 0
	for _, c := range u.cuts {
		if c.from >= at {
			out = append(out, text[at:c.from]...)
			at = c.to
		}
	}
	return append(out, text[at:]...)
}

// uniter finds the members that do not count.
type uniter struct {
	scanner
	cuts []span // of src, which may lie in each other
}

type span struct{ from, to int }

// any reads a value.
func (u *uniter) any() {
	switch u.skipSpace() {
	case '{':
		u.object()
	case '[':
		u.pos++
		if u.skipSpace() == ']' {
			u.pos++
			return
		}
		for more := true; more; {
			u.any()
			more, _ = u.comma(']')
		}
	default:
		u.value()
	}
}

// object reads an object. What is cut of a member goes up to the next one.
func (u *uniter) object() {
	u.pos++
	if u.skipSpace() == '}' {
		u.pos++
		return
	}
	var names []string
	var from []int
	last := map[string]int{} // member of a name
	for more := true; more && u.skipSpace() == '"'; {
		at := u.pos
		_ = u.str()
		name, _ := unquoted(u.src[at:u.pos])
		last[string(name)] = len(names)
		names, from = append(names, string(name)), append(from, at)
		_ = u.colon()
		u.any()
		more, _ = u.comma('}')
	}
	for i, name := range names {
		if last[name] != i {
			u.cuts = append(u.cuts, span{from[i], from[i+1]})
		}
	}
}
