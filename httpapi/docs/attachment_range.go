package docs

import (
	"strconv"
	"strings"

	"divan/httpapi/core"
	"divan/storage/fault"
)

// maxRanges is the number of ranges from which on a Range header is not
// followed any more: the whole attachment is sent (api.md 10.1).
const maxRanges = 10

// byteRange is one range of an attachment, both ends included.
type byteRange struct{ from, to int64 }

// length is the number of bytes in the range.
func (b byteRange) length() int64 { return b.to - b.from + 1 }

// appendContentRange writes the range as a Content-Range value, size being
// the length of the whole attachment.
func (b byteRange) appendContentRange(dst []byte, size int64) []byte {
	dst = append(dst, "bytes "...)
	dst = strconv.AppendInt(dst, b.from, 10)
	dst = append(dst, '-')
	dst = strconv.AppendInt(dst, b.to, 10)
	dst = append(dst, '/')
	return strconv.AppendInt(dst, size, 10)
}

// rangeApplies reports whether a Range header counts. With If-Range it does
// only while the attachment is the one that the client has a part of: the tags
// are compared strongly, and a date never fits, because attachments have none.
func rangeApplies(c *core.Call, etag string) bool {
	values := c.Request.Header["If-Range"]
	return len(values) == 0 || len(values) == 1 && strings.TrimSpace(values[0]) == etag
}

// parseRanges reads a Range header for an attachment of size bytes. No range
// means that the whole attachment is to be sent: the header is absent, uses
// another unit, is malformed, holds ten ranges or more, or asks for everything
// ("0-"). A range that is empty after its end has been cut to the attachment
// is fault.RangeNotSatisfiable.
func parseRanges(header string, size int64) ([]byteRange, error) {
	list, ok := strings.CutPrefix(header, "bytes=")
	if !ok || list == "0-" {
		return nil, nil
	}
	var specs []rangeSpec
	for _, text := range strings.Split(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		spec, ok := parseRangeSpec(text)
		if !ok || len(specs) == maxRanges-1 {
			return nil, nil
		}
		specs = append(specs, spec)
	}
	ranges := make([]byteRange, 0, len(specs))
	for _, spec := range specs {
		if spec.hasFrom && spec.from == 0 && !spec.hasTo {
			return nil, nil
		}
		r := spec.resolve(size)
		if r.to < r.from {
			return nil, fault.New(fault.RangeNotSatisfiable, "Requested range not satisfiable")
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// rangeSpec is one range as it was written: "a-b", "a-" or "-n".
type rangeSpec struct {
	from, to       int64
	hasFrom, hasTo bool
}

func parseRangeSpec(text string) (rangeSpec, bool) {
	from, to, ok := strings.Cut(text, "-")
	if !ok || from == "" && to == "" {
		return rangeSpec{}, false
	}
	var s rangeSpec
	if from != "" {
		if s.from, s.hasFrom = parseOffset(from); !s.hasFrom {
			return rangeSpec{}, false
		}
	}
	if to != "" {
		if s.to, s.hasTo = parseOffset(to); !s.hasTo {
			return rangeSpec{}, false
		}
	}
	return s, true
}

// parseOffset reads a count of bytes written in digits only.
func parseOffset(text string) (int64, bool) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// resolve cuts the range to an attachment of size bytes.
func (s rangeSpec) resolve(size int64) byteRange {
	switch {
	case !s.hasFrom:
		return byteRange{max(0, size-s.to), size - 1}
	case !s.hasTo, s.to >= size:
		if s.hasTo && s.to < s.from {
			return byteRange{s.from, s.to}
		}
		return byteRange{s.from, size - 1}
	}
	return byteRange{s.from, s.to}
}
