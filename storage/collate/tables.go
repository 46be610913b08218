package collate

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the tables
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

//go:embed tables.bin.gz
var packed []byte

// blockBits is how many low bits of a code point select an entry of its block.
const blockBits = 6

// An entry of a block: 0 for an ignorable character or a Hangul syllable,
// unassigned for a character whose element is computed, else the offset and
// the number of its collation elements, with contextual set when what comes
// before or behind it may change them.
const (
	contextual = 1 << 31
	unassigned = 0xffffffff
)

// Hangul syllables are composed of the elements of their Jamo.
const (
	hangulFirst = 0xac00
	hangulLast  = 0xd7a3
	leads       = 19
	vowels      = 21
	trails      = 28
)

// node is a state of the automaton of contractions.
type node struct {
	next map[rune]*node
	ces  []uint64 // elements of what was read up to here
	ends bool     // a contraction ends here
}

// table is the collation of ICU's root locale.
type table struct {
	index        []uint16 // block of a code point's upper bits
	blocks       []uint32
	ces          []uint64 // primary weight in the upper half, secondary and tertiary in the lower
	contractions map[rune]*node
	prefixes     map[rune]map[rune][]uint64 // character → character before it → elements
	combining    map[rune]uint16            // lead combining class << 8 | trail combining class
	compressible [256]bool                  // lead bytes of primary weights that are written once for a run
	lead         [leads][]uint64
	vowel        [vowels][]uint64
	trail        [trails][]uint64
	ascii        [128]asciiElement
}

// asciiElement is the one element of an ASCII character, ready to be written.
type asciiElement struct {
	primary  uint32 // its bytes, the first one lowest
	n        uint8  // how many of them
	used     uint8  // 0 for an ignorable character, else 1
	tertiary byte   // 0: common
}

// root returns the tables; the first call unpacks them, which takes about 15 ms.
var root = sync.OnceValue(func() *table {
	t, err := unpack(packed)
	if err != nil {
		// the file is part of the program, and a test unpacks it
		panic(fmt.Sprintf("collate: embedded tables: %v", err))
	}
	return t
})

// unpacker reads the file that gen writes: little-endian numbers.
type unpacker struct {
	r   *bytes.Reader
	err error
}

func (u *unpacker) uint32() uint32 {
	var b [4]byte
	if _, err := io.ReadFull(u.r, b[:]); err != nil {
		u.err = err
	}
	return binary.LittleEndian.Uint32(b[:])
}

func (u *unpacker) elements() []uint64 {
	n := u.uint32()
	if u.err != nil || int64(n) > int64(u.r.Len())/8 {
		u.err = io.ErrUnexpectedEOF
		return nil
	}
	out := make([]uint64, n)
	u.err = binary.Read(u.r, binary.LittleEndian, out)
	return out
}

func unpack(packed []byte) (*table, error) {
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(zr)
	if err != nil {
		return nil, err
	}
	u := &unpacker{r: bytes.NewReader(plain)}
	t := &table{contractions: map[rune]*node{}, prefixes: map[rune]map[rune][]uint64{}, combining: map[rune]uint16{}}
	t.index = make([]uint16, u.uint32())
	t.blocks = make([]uint32, u.uint32())
	for _, dst := range []any{t.index, t.blocks} {
		if err := binary.Read(u.r, binary.LittleEndian, dst); err != nil {
			return nil, err
		}
	}
	t.ces = u.elements()
	t.unpackContexts(u)
	for range u.uint32() {
		r := rune(u.uint32())
		t.combining[r] = uint16(u.uint32())
	}
	for range u.uint32() {
		t.compressible[byte(u.uint32())] = true
	}
	if u.err != nil {
		return nil, u.err
	}
	t.derive()
	return t, nil
}

// unpackContexts reads the contractions and the prefix rules.
func (t *table) unpackContexts(u *unpacker) {
	for range u.uint32() {
		var n *node
		for i := range u.uint32() {
			r := rune(u.uint32())
			switch {
			case i == 0:
				if t.contractions[r] == nil {
					t.contractions[r] = &node{next: map[rune]*node{}}
				}
				n = t.contractions[r]
			case n.next[r] == nil:
				n.next[r] = &node{next: map[rune]*node{}}
				fallthrough
			default:
				n = n.next[r]
			}
		}
		ces := u.elements()
		if n != nil {
			n.ces, n.ends = ces, true
		}
		if u.err != nil {
			return
		}
	}
	for range u.uint32() {
		before, r := rune(u.uint32()), rune(u.uint32())
		if t.prefixes[r] == nil {
			t.prefixes[r] = map[rune][]uint64{}
		}
		t.prefixes[r][before] = u.elements()
	}
}

// derive fills in what follows from the rest: Jamo and ASCII.
func (t *table) derive() {
	for i := range t.lead {
		t.lead[i] = t.own(rune(0x1100 + i))
	}
	for i := range t.vowel {
		t.vowel[i] = t.own(rune(0x1161 + i))
	}
	for i := 1; i < trails; i++ {
		t.trail[i] = t.own(rune(0x11a7 + i))
	}
	for i := range t.ascii {
		ces := t.own(rune(i))
		if len(ces) == 0 {
			continue
		}
		a := &t.ascii[i]
		a.used = 1
		for shift := 56; shift >= 32; shift -= 8 {
			if b := byte(ces[0] >> shift); b != 0 {
				a.primary |= uint32(b) << (8 * a.n)
				a.n++
			}
		}
		if w := uint32(ces[0]) & tertiaryMask; w != commonWeight {
			a.tertiary = byte(w>>8) + 0xc0
		}
	}
}

// entry returns the entry of a character.
func (t *table) entry(r rune) uint32 {
	return t.blocks[uint32(t.index[r>>blockBits])<<blockBits|uint32(r)&(1<<blockBits-1)]
}

// own returns the elements that a character has by itself.
func (t *table) own(r rune) []uint64 {
	e := t.entry(r)
	if e == 0 || e == unassigned {
		return nil
	}
	e &^= contextual
	return t.ces[e>>5 : e>>5+e&31]
}
