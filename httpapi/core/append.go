package core

import (
	"maps"
	"slices"
	"strconv"

	"divan/shard/index"
	"divan/storage/doc"
)

// AppendStrings appends a JSON array of strings.
func AppendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = doc.AppendString(dst, s)
	}
	return append(dst, ']')
}

// Count is a member of an object that is a number.
type Count struct {
	Name string
	N    uint64
}

// AppendCounts appends members, separated by commas.
func AppendCounts(dst []byte, counts []Count) []byte {
	for i, m := range counts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), m.Name...), `":`...)
		dst = strconv.AppendUint(dst, m.N, 10)
	}
	return dst
}

// AppendLeftOut appends the member documents_left_out of the information about an index, a
// comma in front: how many documents the index holds nothing of, and why the first of them
// cannot be indexed. An index of all documents has no such member.
func AppendLeftOut(dst []byte, count uint64, first []index.LeftOut) []byte {
	if count == 0 {
		return dst
	}
	dst = AppendCounts(append(dst, `,"documents_left_out":{`...), []Count{{Name: "count", N: count}})
	reasons := make(map[string]string, len(first))
	for _, l := range first {
		reasons[l.ID] = l.Reason
	}
	return append(AppendTexts(append(dst, `,"reasons":`...), reasons), '}')
}

// AppendTexts appends a JSON object whose values are strings, sorted by name.
func AppendTexts(dst []byte, texts map[string]string) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(texts)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(doc.AppendString(dst, name), ':')
		dst = doc.AppendString(dst, texts[name])
	}
	return append(dst, '}')
}

// AppendEscaped appends s percent-encoded as CouchDB does it: only letters,
// digits and ". - _ :" stand for themselves.
func AppendEscaped(dst []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		b := s[i]
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '.', b == '-', b == '_', b == ':':
			dst = append(dst, b)
		default:
			dst = append(dst, '%', digits[b>>4], digits[b&15])
		}
	}
	return dst
}
