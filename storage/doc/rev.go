package doc

import (
	"crypto/md5"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"divan/storage/fault"
)

// rawIDLen is the length of a revision id that is printed as hexadecimal
// digits: 32 digits are kept as 16 bytes.
const rawIDLen = 16

// Rev names one revision of a document: its generation and its id.
//
// Pos counts from 1; 0 occurs only in the revisions of _local documents
// ("0-7"), whose ID is the counter's decimal text. ID holds raw bytes: an id
// of exactly 32 hexadecimal digits is kept as the 16 bytes they stand for, any
// other text as it is.
type Rev struct {
	Pos uint64
	ID  string
}

// errRev is the refusal for every malformed revision.
func errRev() *fault.Error { return fault.New(fault.BadRequest, "Invalid rev format") }

// ParseRev reads "<pos>-<id>". The error is fault.BadRequest "Invalid rev
// format": no dash, a position that is no decimal number (or one near 2^63; a
// plus sign may stand before it, as in CouchDB), or 32 characters that are not
// all hexadecimal digits.
func ParseRev(s string) (Rev, error) {
	pos, id := revPosition(s)
	if id == 0 {
		return Rev{}, errRev()
	}
	raw, ok := parseRevID(s[id:])
	if !ok {
		return Rev{}, errRev()
	}
	return Rev{Pos: pos, ID: raw}, nil
}

// revPosition reads the position of a revision and tells where its id starts;
// 0 when there is no proper position.
func revPosition[T string | []byte](s T) (pos uint64, id int) {
	first := 0
	if len(s) > 0 && s[0] == '+' {
		first = 1
	}
	for i := first; i < len(s); i++ {
		switch c := s[i]; {
		case c == '-' && i > first:
			return pos, i + 1
		case !isDigit(c) || pos > (math.MaxInt64-9)/10:
			return 0, 0
		default:
			pos = pos*10 + uint64(c-'0')
		}
	}
	return 0, 0
}

// parseRevID turns the printed form of a revision id into the kept one. It
// fails only for 32 characters that are not all hexadecimal digits.
func parseRevID(s string) (string, bool) {
	if len(s) != 2*rawIDLen {
		return s, true
	}
	raw, ok := decodeHexID(s)
	return string(raw[:]), ok
}

// decodeHexID decodes the 32 hexadecimal digits s.
func decodeHexID[T string | []byte](s T) (raw [rawIDLen]byte, ok bool) {
	for i := range raw {
		hi, lo := hexDigit(s[2*i]), hexDigit(s[2*i+1])
		if hi|lo > 15 {
			return raw, false
		}
		raw[i] = hi<<4 | lo
	}
	return raw, true
}

// hexDigit returns the value of a hexadecimal digit, 255 for anything else.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return math.MaxUint8
}

// String returns the form shown to clients, "<pos>-<id>"; an id of 16 bytes is
// printed as 32 lower-case hexadecimal digits.
func (r Rev) String() string {
	var buf [64]byte
	return string(r.AppendText(buf[:0]))
}

// AppendText appends what String returns. An id that a client made up may hold
// any character; use AppendJSON inside JSON text.
func (r Rev) AppendText(dst []byte) []byte {
	dst = strconv.AppendUint(dst, r.Pos, 10)
	dst = append(dst, '-')
	return appendRevID(dst, r.ID)
}

// AppendJSON appends the printed form as a JSON string, quotes included.
func (r Rev) AppendJSON(dst []byte) []byte {
	if len(r.ID) != rawIDLen {
		return AppendString(dst, r.String())
	}
	dst = append(dst, '"')
	dst = r.AppendText(dst)
	return append(dst, '"')
}

// IDText returns the printed form of the id alone, as in _revisions.ids.
func (r Rev) IDText() string {
	if len(r.ID) != rawIDLen {
		return r.ID
	}
	return hex.EncodeToString([]byte(r.ID))
}

// appendRevID appends the printed form of a kept revision id.
func appendRevID(dst []byte, id string) []byte {
	if len(id) != rawIDLen {
		return append(dst, id...)
	}
	const digits = "0123456789abcdef"
	var text [2 * rawIDLen]byte
	for i := range rawIDLen {
		c := id[i]
		text[2*i], text[2*i+1] = digits[c>>4], digits[c&15]
	}
	return append(dst, text[:]...)
}

// IsZero reports whether r is the zero value, which names no revision.
func (r Rev) IsZero() bool { return r.Pos == 0 && r.ID == "" }

// Compare orders by position, then by the raw bytes of the id: -1, 0 or +1.
func (r Rev) Compare(o Rev) int {
	switch {
	case r.Pos < o.Pos:
		return -1
	case r.Pos > o.Pos:
		return 1
	}
	return strings.Compare(r.ID, o.ID)
}

// Path is a revision and its ancestors, newest first, as in _revisions. Start
// is the position of IDs[0]; IDs[i] stands at Start-i. IDs are in the form of
// Rev.ID. An empty path names nothing.
type Path struct {
	Start uint64
	IDs   []string
}

// Rev returns the newest revision of the path, the zero Rev when it is empty.
func (p Path) Rev() Rev {
	if len(p.IDs) == 0 {
		return Rev{}
	}
	return Rev{Pos: p.Start, ID: p.IDs[0]}
}

// Parent returns the second newest revision, the zero Rev when there is none.
func (p Path) Parent() Rev {
	if len(p.IDs) < 2 {
		return Rev{}
	}
	return Rev{Pos: p.Start - 1, ID: p.IDs[1]}
}

// From returns the part of the path at positions from pos on.
func (p Path) From(pos uint64) Path {
	if p.Start < pos {
		return Path{}
	}
	return Path{Start: p.Start, IDs: p.IDs[:min(uint64(len(p.IDs)), p.Start-pos+1)]}
}

// AppendJSON appends the path as CouchDB shows it in a document:
// {"start":N,"ids":["…",…]}.
func (p Path) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"start":`...)
	dst = strconv.AppendUint(dst, p.Start, 10)
	dst = append(dst, `,"ids":[`...)
	for i, id := range p.IDs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if len(id) != rawIDLen {
			dst = AppendString(dst, id)
			continue
		}
		dst = append(dst, '"')
		dst = appendRevID(dst, id)
		dst = append(dst, '"')
	}
	return append(dst, "]}"...)
}

// NewRevID derives the id of an interactive edit, 16 raw bytes, from (deleted,
// parent, body, and each attachment's name, type and digest) and nothing else,
// so that the same edit made through two nodes, or by CouchDB, is one revision.
// It is the MD5 of Erlang's external term [Deleted, Pos, Parent, Body, Atts].
// body is as ParseEnvelope or a store gives it; nil is an empty one.
func NewRevID(deleted bool, parent Rev, body []byte, atts []Attachment) string {
	var space [3 << 10]byte
	term := space[:0]
	if len(body) > len(space)/2 {
		term = make([]byte, 0, 2*len(body))
	}
	if body == nil {
		body = []byte("{}")
	}
	term = append(term, termVersion, termList, 0, 0, 0, 5)
	term = appendTermAtom(term, strconv.FormatBool(deleted))
	if parent.IsZero() {
		term = appendTermInt(appendTermInt(term, 0), 0)
	} else {
		term = appendTermBinary(appendTermInt(term, int64(parent.Pos)), parent.ID)
	}
	term = appendTerm(term, body)
	start := len(term)
	term = append(term, termList, 0, 0, 0, 0)
	for i := range atts {
		a := &atts[len(atts)-1-i]
		term = append(term, termSmallTuple, 3)
		term = appendTermBinary(term, a.Name)
		term = appendTermBinary(term, a.ContentType)
		term = appendTermBinary(term, a.Digest[:])
	}
	sum := md5.Sum(append(endList(term, start, len(atts)), termNil))
	return string(sum[:])
}
