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
	versionAnywhere = 1       // of a bookmark of which the ranges do not count
	versionOfRanges = 2       // the ranges follow
	mostParts       = 1 << 10 // of an order
	missingValue    = 0x80    // a flag of a part
	valueLength     = 10      // bytes of a part, at least
)

// Place is where a page of hits begins.
type Place struct {
	search.Position        // behind which it begins
	Asked           Ranges // for the pages before
}

// AppendBookmark appends the bookmark of a place; nil: that of the start. A bookmark is the values of
// the order and the id, so that it means the same on every node, and the ranges for which that is so.
func AppendBookmark(dst []byte, p *Place) []byte {
	if p == nil {
		return append(dst, start...)
	}
	b := []byte{versionAnywhere}
	if p.Asked != AnyRanges {
		b = binary.BigEndian.AppendUint32([]byte{versionOfRanges}, uint32(p.Asked))
	}
	b = binary.AppendUvarint(b, uint64(len(p.Order)))
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

// AppendNext appends the bookmark of what comes behind the hits that were found. Behind none it is the one that
// was given with the request, which ParseBookmark has read; nil: none was, and it is the start.
func AppendNext(dst []byte, of *Found, given *string) []byte {
	switch {
	case len(of.Hits) > 0:
		return AppendBookmark(dst, &Place{of.Hits[len(of.Hits)-1].Position, of.Asked})
	case given != nil:
		return append(dst, *given...)
	default:
		return AppendBookmark(dst, nil)
	}
}

// ParseBookmark reads a bookmark; nil: the start.
func ParseBookmark(text string) (*Place, error) {
	if text == start || text == startOfNouveau {
		return nil, nil //nolint:nilnil // the start is no position
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") || // which the decoder skips, and answers repeat
		len(b) < 6 || b[0] != versionAnywhere && b[0] != versionOfRanges {
		return nil, ErrBookmark()
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.ChecksumIEEE(b) != sum {
		return nil, ErrBookmark()
	}
	out, withRanges := &Place{}, b[0] == versionOfRanges
	if b = b[1:]; withRanges {
		if len(b) < 4 || binary.BigEndian.Uint32(b) == uint32(AnyRanges) {
			return nil, ErrBookmark()
		}
		out.Asked, b = Ranges(binary.BigEndian.Uint32(b)), b[4:]
	}
	n, used := binary.Uvarint(b)
	if used <= 0 || n == 0 || n > mostParts || n*valueLength > uint64(len(b)) {
		return nil, ErrBookmark()
	}
	b = b[used:]
	out.Order = make([]search.Value, n)
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
