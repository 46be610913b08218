package search

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"math"
	"strings"

	"divan/shard/search"
	"divan/storage/fault"
)

// ErrBookmark is the error of a bookmark that cannot be read.
func ErrBookmark() error {
	return fault.New(fault.BadRequest, "Invalid bookmark parameter supplied")
}

// start is the bookmark of an answer without hits: the next one begins anew. CouchDB has this
// one too, and the other one for _nouveau.
const start, startOfNouveau = "g2o", "W10"

const (
	bookmarkVersion = 1
	mostParts       = 1 << 10 // of an order
	missingValue    = 0x80    // a flag of a part
)

// AppendBookmark appends the bookmark of a position; nil: that of the start. A bookmark is the
// values of the order and the id, so that it means the same on every node.
func AppendBookmark(dst []byte, p *search.Position) []byte {
	if p == nil {
		return append(dst, start...)
	}
	b := binary.AppendUvarint([]byte{bookmarkVersion}, uint64(len(p.Order)))
	for i := range p.Order {
		v := &p.Order[i]
		flags := byte(v.Kind)
		if v.Missing {
			flags |= missingValue
		}
		b = binary.BigEndian.AppendUint64(append(b, flags), math.Float64bits(v.Number))
		b = append(binary.AppendUvarint(b, uint64(len(v.Text))), v.Text...)
	}
	b = append(b, p.ID...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.AppendEncode(dst, b)
}

// AppendNext appends the bookmark of what comes behind some hits. Behind none it is the one that
// was given with the request, which ParseBookmark has read; nil: none was, and it is the start.
func AppendNext(dst []byte, hits []search.Hit, given *string) []byte {
	switch {
	case len(hits) > 0:
		return AppendBookmark(dst, &hits[len(hits)-1].Position)
	case given != nil:
		return append(dst, *given...)
	default:
		return AppendBookmark(dst, nil)
	}
}

// ParseBookmark reads a bookmark; nil: the start.
func ParseBookmark(text string) (*search.Position, error) {
	if text == start || text == startOfNouveau {
		return nil, nil //nolint:nilnil // the start is no position
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") || // which the decoder skips, and answers repeat
		len(b) < 6 || b[0] != bookmarkVersion {
		return nil, ErrBookmark()
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.ChecksumIEEE(b) != sum {
		return nil, ErrBookmark()
	}
	n, used := binary.Uvarint(b[1:])
	if used <= 0 || n == 0 || n > mostParts {
		return nil, ErrBookmark()
	}
	b = b[1+used:]
	out := &search.Position{Order: make([]search.Value, n)}
	for i := range out.Order {
		if len(b) < 9 {
			return nil, ErrBookmark()
		}
		v := &out.Order[i]
		v.Kind, v.Missing = search.SortBy(b[0]&^missingValue), b[0]&missingValue != 0
		v.Number = math.Float64frombits(binary.BigEndian.Uint64(b[1:]))
		b = b[9:]
		length, used := binary.Uvarint(b)
		if used <= 0 || length > uint64(len(b)-used) || math.IsNaN(v.Number) {
			return nil, ErrBookmark()
		}
		v.Text, b = string(b[used:used+int(length)]), b[used+int(length):]
	}
	out.ID = string(b)
	return out, nil
}
