package cluster

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"divan/shard/ring"
	"divan/storage/fault"
)

// The text of a sequence is "N-" and an opaque part: one letter for the
// version of the encoding, then for every shard, in ring order, one piece of
// fixed width, so that a feed re-encodes only the end of one piece per row.
//
//	piece   bytes  what
//	range       4  beginning of the range, big-endian
//	            4  end of the range, included
//	copy        7  first bytes of the copy's uuid
//	(20 characters)
//	sequence    9  the copy's sequence, big-endian
//	(12 characters)
//
// N is the sum of the sequences: informational, and never read back.
const (
	seqVersion    = 'D'
	uuidPrefix    = 7
	headBytes     = 4 + 4 + uuidPrefix
	headChars     = headBytes / 3 * 4
	pieceBytes    = headBytes + 9
	pieceChars    = pieceBytes / 3 * 4
	maxPieces     = 4096    // q is far below this; bounds what a client can make us decode
	maxSumDigits  = 20      // of the number before the dash
	maxSequence   = 1 << 62 // no copy ever gets there; anything above is junk
	seqAlphabet   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	malformedText = "Malformed sequence supplied in 'since' parameter."
)

// copyID names the copy of a shard inside a sequence: the first bytes of the
// uuid that its store got when it was made.
type copyID [uuidPrefix]byte

func prefixOf(uuid [16]byte) copyID { return copyID(uuid[:uuidPrefix]) }

// mark is the position in one copy's sequence.
type mark struct {
	begin, end uint32
	copy       copyID
	seq        uint64
}

// Seq is a position in the changes of a database: for every range the copy it
// was read from and that copy's sequence. The zero value is the beginning.
type Seq struct {
	now   bool
	marks []mark // in ring order, covering the ring once; empty at the beginning
}

// Now returns the position after everything that is there when a feed opens.
func Now() Seq { return Seq{now: true} }

// IsNow reports whether s stands for the end, wherever that is.
func (s Seq) IsNow() bool { return s.now }

// IsZero reports whether s is the beginning.
func (s Seq) IsZero() bool { return !s.now && len(s.marks) == 0 }

// ParseSince reads what a client sends as since: a sequence that was handed
// out, also in JSON quotes or without the number and dash in front of it, "0"
// for the beginning, or "now". Anything else is a fault.BadRequest
// (api.md section 13). Whether the ranges and copies in it still exist is
// seen when a feed opens.
func ParseSince(text string) (Seq, error) {
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	switch text {
	case "0":
		return Seq{}, nil
	case "now":
		return Now(), nil
	}
	if sum, rest, ok := strings.Cut(text, "-"); ok && isNumber(sum) {
		text = rest
	}
	marks, ok := decodeMarks(text)
	if !ok {
		return Seq{}, fault.New(fault.BadRequest, malformedText)
	}
	return Seq{marks: marks}, nil
}

func isNumber(s string) bool {
	if s == "" || len(s) > maxSumDigits {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// decodeMarks reads the opaque part. It accepts only what encode can have
// written: pieces in ring order that cover the ring exactly once.
func decodeMarks(text string) ([]mark, bool) {
	if len(text) <= 1 || text[0] != seqVersion || (len(text)-1)%pieceChars != 0 || len(text) > 1+maxPieces*pieceChars {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text[1:])
	if err != nil || len(raw) != (len(text)-1)/4*3 { // the decoder skips line ends
		return nil, false
	}
	marks := make([]mark, 0, len(raw)/pieceBytes)
	next := uint64(0) // where the next range must begin
	for ; len(raw) > 0; raw = raw[pieceBytes:] {
		m := mark{
			begin: binary.BigEndian.Uint32(raw),
			end:   binary.BigEndian.Uint32(raw[4:]),
			copy:  copyID(raw[8:headBytes]),
			seq:   binary.BigEndian.Uint64(raw[headBytes+1:]),
		}
		if raw[headBytes] != 0 || m.seq > maxSequence || uint64(m.begin) != next || m.end < m.begin {
			return nil, false
		}
		next = uint64(m.end) + 1
		marks = append(marks, m)
	}
	return marks, next == math.MaxUint32+1
}

// String returns the text of s, as a client may send it back.
func (s Seq) String() string {
	switch {
	case s.now:
		return "now"
	case len(s.marks) == 0:
		return "0"
	}
	v := newVector(s.marks)
	return string(v.AppendTo(nil))
}

// vector is a sequence on the move: set changes one shard's part without
// encoding the others again.
type vector struct {
	marks []mark
	sum   uint64
	text  []byte // the opaque part
}

// newVector encodes marks, which it keeps and moves.
func newVector(marks []mark) vector {
	v := vector{marks: marks, text: make([]byte, 1+len(marks)*pieceChars)}
	v.text[0] = seqVersion
	for i, m := range marks {
		v.sum += m.seq
		v.encodeHead(i)
		v.encode(i)
	}
	return v
}

// encodeHead writes the range and copy of shard i into the text.
func (v *vector) encodeHead(i int) {
	m := &v.marks[i]
	var head [headBytes]byte
	binary.BigEndian.PutUint32(head[:], m.begin)
	binary.BigEndian.PutUint32(head[4:], m.end)
	copy(head[8:], m.copy[:])
	base64.RawURLEncoding.Encode(v.text[1+i*pieceChars:], head[:])
}

// move makes shard i a position in another copy of the same range.
func (v *vector) move(i int, id copyID, seq uint64) {
	if v.marks[i].copy != id {
		v.marks[i].copy = id
		v.encodeHead(i)
	}
	v.set(i, seq)
}

// set moves shard i to seq.
func (v *vector) set(i int, seq uint64) {
	v.sum += seq - v.marks[i].seq
	v.marks[i].seq = seq
	v.encode(i)
}

// encode writes the sequence of shard i into the text: nine bytes, the first
// of them zero, as twelve characters.
func (v *vector) encode(i int) {
	at := v.text[1+i*pieceChars+headChars:][:12]
	seq := v.marks[i].seq
	at[0] = seqAlphabet[0]
	for k := 11; k >= 1; k-- {
		at[k] = seqAlphabet[seq&63]
		seq >>= 6
	}
}

// AppendTo appends the text of the sequence.
func (v *vector) AppendTo(dst []byte) []byte {
	dst = strconv.AppendUint(dst, v.sum, 10)
	dst = append(dst, '-')
	return append(dst, v.text...)
}

// lowest returns the smallest sequence that s names for any part of a range; 0
// when it says nothing about it.
func (s Seq) lowest(r ring.Range) uint64 {
	return s.least(r, func(m mark) uint64 { return m.seq })
}

// resume returns where a feed that has seen s goes on in a copy of a range
// (semantics.md section 7.2). A part of s that was read from this very copy
// counts as it is. One that was read from a copy that this one continues, since
// the range was split, counts up to the sequence of the split. One that was
// read from another copy of the range counts as shared says; any other part,
// and a sequence that this copy has not reached (it was restored from a
// backup), means the beginning: changes are repeated, never missed.
func (s Seq) resume(r ring.Range, head changesHead, shared func(id copyID, seq uint64) uint64) uint64 {
	self := prefixOf(head.UUID)
	seq := s.least(r, func(m mark) uint64 {
		if m.copy == self {
			return m.seq
		}
		for _, o := range head.Origins {
			if prefixOf(o.UUID) == m.copy {
				return min(m.seq, o.Upto)
			}
		}
		if m.begin == r.Begin && m.end == r.End && m.seq > 0 {
			return shared(m.copy, m.seq)
		}
		return 0
	})
	if seq > head.Seq {
		return 0
	}
	return seq
}

// copyOf returns the copy that s names for exactly that range.
func (s Seq) copyOf(r ring.Range) (copyID, bool) {
	for _, m := range s.marks {
		if m.begin == r.Begin && m.end == r.End {
			return m.copy, m.seq > 0
		}
	}
	return copyID{}, false
}

// least returns the smallest position of the parts of s that overlap a range.
func (s Seq) least(r ring.Range, position func(mark) uint64) uint64 {
	least, found := uint64(0), false
	for _, m := range s.marks {
		if m.end < r.Begin || m.begin > r.End {
			continue
		}
		if p := position(m); !found || p < least {
			least, found = p, true
		}
	}
	return least
}
