// Package sequence is the positions in the changes of a database that clients
// are given, and the rules of what one means for a copy that it was not read
// from. It is pure.
package sequence

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

// CopyID names the copy of a shard inside a sequence: the first bytes of the
// uuid that its store got when it was made.
type CopyID [uuidPrefix]byte

// PrefixOf returns the id of the copy that has a uuid.
func PrefixOf(uuid [16]byte) CopyID { return CopyID(uuid[:uuidPrefix]) }

// Mark is the position in one copy's sequence.
type Mark struct {
	Begin, End uint32 // of the range; End is included
	Copy       CopyID
	Seq        uint64
}

// Seq is a position in the changes of a database: for every range the copy it
// was read from and that copy's sequence. The zero value is the beginning.
type Seq struct {
	now   bool
	marks []Mark // in ring order, covering the ring once; empty at the beginning
}

// Of returns the position of some marks, which are in ring order and cover the
// ring, or the part of it that is asked about. It keeps them.
func Of(marks []Mark) Seq { return Seq{marks: marks} }

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
func decodeMarks(text string) ([]Mark, bool) {
	if len(text) <= 1 || text[0] != seqVersion || (len(text)-1)%pieceChars != 0 || len(text) > 1+maxPieces*pieceChars {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text[1:])
	if err != nil || len(raw) != (len(text)-1)/4*3 { // the decoder skips line ends
		return nil, false
	}
	marks := make([]Mark, 0, len(raw)/pieceBytes)
	next := uint64(0) // where the next range must begin
	for ; len(raw) > 0; raw = raw[pieceBytes:] {
		m := Mark{
			Begin: binary.BigEndian.Uint32(raw),
			End:   binary.BigEndian.Uint32(raw[4:]),
			Copy:  CopyID(raw[8:headBytes]),
			Seq:   binary.BigEndian.Uint64(raw[headBytes+1:]),
		}
		if raw[headBytes] != 0 || m.Seq > maxSequence || uint64(m.Begin) != next || m.End < m.Begin {
			return nil, false
		}
		next = uint64(m.End) + 1
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
	v := NewVector(s.marks)
	return string(v.AppendTo(nil))
}

// Vector is a sequence on the move: set changes one shard's part without
// encoding the others again.
type Vector struct {
	Marks []Mark // to be read; Set and Move change them
	sum   uint64
	text  []byte // the opaque part
}

// NewVector encodes marks, which it keeps and moves.
func NewVector(marks []Mark) Vector {
	v := Vector{Marks: marks, text: make([]byte, 1+len(marks)*pieceChars)}
	v.text[0] = seqVersion
	for i, m := range marks {
		v.sum += m.Seq
		v.encodeHead(i)
		v.encode(i)
	}
	return v
}

// encodeHead writes the range and copy of shard i into the text.
func (v *Vector) encodeHead(i int) {
	m := &v.Marks[i]
	var head [headBytes]byte
	binary.BigEndian.PutUint32(head[:], m.Begin)
	binary.BigEndian.PutUint32(head[4:], m.End)
	copy(head[8:], m.Copy[:])
	base64.RawURLEncoding.Encode(v.text[1+i*pieceChars:], head[:])
}

// Move makes shard i a position in another copy of the same range.
func (v *Vector) Move(i int, id CopyID, seq uint64) {
	if v.Marks[i].Copy != id {
		v.Marks[i].Copy = id
		v.encodeHead(i)
	}
	v.Set(i, seq)
}

// Set moves shard i to seq.
func (v *Vector) Set(i int, seq uint64) {
	v.sum += seq - v.Marks[i].Seq
	v.Marks[i].Seq = seq
	v.encode(i)
}

// encode writes the sequence of shard i into the text: nine bytes, the first
// of them zero, as twelve characters.
func (v *Vector) encode(i int) {
	at := v.text[1+i*pieceChars+headChars:][:12]
	seq := v.Marks[i].Seq
	at[0] = seqAlphabet[0]
	for k := 11; k >= 1; k-- {
		at[k] = seqAlphabet[seq&63]
		seq >>= 6
	}
}

// AppendTo appends the text of the sequence.
func (v *Vector) AppendTo(dst []byte) []byte {
	dst = strconv.AppendUint(dst, v.sum, 10)
	dst = append(dst, '-')
	return append(dst, v.text...)
}

// Lowest returns the smallest sequence that s names for any part of a range; 0
// when it says nothing about it.
func (s Seq) Lowest(r ring.Range) uint64 {
	return s.least(r, func(m Mark) uint64 { return m.Seq })
}

// Head is the metadata that a copy sends before the rows of its changes.
type Head struct {
	Seq     uint64 // the moment: the last sequence there is
	UUID    [16]byte
	Origins []Origin
}

// Origin names a copy that this one continues: every change that the origin held up to a sequence
// is in this copy under the same sequence. Only a range that was split has origins.
type Origin struct {
	UUID [16]byte
	Upto uint64
}

// Resume returns where a feed that has seen s goes on in a copy of a range
// (semantics.md section 7.2). A part of s that was read from this very copy
// counts as it is. One that was read from a copy that this one continues, since
// the range was split, counts up to the sequence of the split. Beyond that, and
// where it was read from another copy, it counts as shared says;
// a sequence that this copy has not reached (it was restored from a
// backup) means the beginning: changes are repeated, never missed.
func (s Seq) Resume(r ring.Range, head Head, shared func(id CopyID, seq uint64) uint64) uint64 {
	self := PrefixOf(head.UUID)
	seq := s.least(r, func(m Mark) uint64 {
		if m.Copy == self {
			return m.Seq
		}
		for _, o := range head.Origins {
			switch {
			case PrefixOf(o.UUID) != m.Copy:
			case m.Seq <= o.Upto:
				return m.Seq
			default:
				return max(o.Upto, shared(m.Copy, m.Seq))
			}
		}
		if m.Seq == 0 {
			return 0
		}
		return shared(m.Copy, m.Seq)
	})
	if seq > head.Seq {
		return 0
	}
	return seq
}

// CopyOf returns the copy that s names for exactly that range.
func (s Seq) CopyOf(r ring.Range) (CopyID, bool) {
	for _, m := range s.marks {
		if m.Begin == r.Begin && m.End == r.End {
			return m.Copy, m.Seq > 0
		}
	}
	return CopyID{}, false
}

// least returns the smallest position of the parts of s that overlap a range.
func (s Seq) least(r ring.Range, position func(Mark) uint64) uint64 {
	least, found := uint64(0), false
	for _, m := range s.marks {
		if m.End < r.Begin || m.Begin > r.End {
			continue
		}
		if p := position(m); !found || p < least {
			least, found = p, true
		}
	}
	return least
}
