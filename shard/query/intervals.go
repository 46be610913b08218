package query

import (
	"bytes"
	"slices"
	"strings"

	"divan/storage/collate"
	"divan/storage/doc"
)

// Interval is the values from Lo to Hi, both included.
type Interval struct{ Lo, Hi Bound }

// Bound is an end of an interval; the zero value is none.
type Bound struct {
	Text []byte // canonical JSON
	Key  []byte // of Text, in the order of the field: the collation key; of _id an order of bytes, see IDKey
}

// Point reports whether the interval is one value.
func (v Interval) Point() bool { return v.Lo.Key != nil && string(v.Lo.Key) == string(v.Hi.Key) }

// full reports whether the interval holds every value.
func (v Interval) full() bool { return v.Lo.Key == nil && v.Hi.Key == nil }

// Full reports whether intervals hold every value.
func Full(list []Interval) bool { return len(list) == 1 && list[0].full() }

// Intervals returns intervals that hold the value of a field in every document
// that the selector matches, apart from each other and in order. None: nothing
// matches. With alternatives $in and $or count, and there may be several; without
// them there is one at most, which CouchDB would find.
func (s *Selector) Intervals(field string, alternatives bool) []Interval {
	if s.root == nil {
		return []Interval{{}}
	}
	return s.root.intervals(field, alternatives)
}

func (n *node) intervals(field string, alternatives bool) []Interval {
	switch n.op {
	case opAnd:
		out := []Interval{{}}
		for _, kid := range n.kids {
			if next := kid.intervals(field, alternatives); !Full(next) {
				out = intersect(out, next)
			}
		}
		return out
	case opOr:
		if !alternatives || len(n.kids) == 0 {
			break
		}
		var out []Interval
		for _, kid := range n.kids {
			next := kid.intervals(field, true)
			if Full(next) {
				return next
			}
			out = append(out, next...)
		}
		return union(out)
	case opField:
		if n.field == field {
			return n.kids[0].bounded(n.raw, alternatives)
		}
	default:
	}
	return []Interval{{}}
}

// bounded returns the intervals of a condition about one value.
func (n *node) bounded(raw, alternatives bool) []Interval {
	b := func(text []byte) Bound { return newBound(text, raw) }
	switch n.op {
	case opLt, opLte:
		return []Interval{{Hi: b(n.arg.text)}}
	case opGt, opGte:
		return []Interval{{Lo: b(n.arg.text)}}
	case opEq:
		at := b(n.arg.text)
		return []Interval{{Lo: at, Hi: at}}
	case opBeginsWith:
		return prefixed(n.arg.text, raw)
	case opIn:
		if alternatives {
			return points(n.arg.text, raw)
		}
	default:
	}
	return []Interval{{}}
}

// points returns the arguments of $in. An array matches by its elements, so that
// arrays are not bounded.
func points(list []byte, raw bool) []Interval {
	var out []Interval
	for e := (elements{text: list}); e.next(); {
		at := newBound(Once(e.value), raw)
		out = append(out, Interval{Lo: at, Hi: at})
	}
	if len(out) == 0 || raw {
		return union(out)
	}
	first, last := newBound([]byte("[]"), false), newBound([]byte("{}"), false)
	last.Key = []byte{first.Key[0], 0xff} // behind every array, and before every object
	return union(append(out, Interval{Lo: first, Hi: last}))
}

// prefixed returns the strings that begin with one. Only its leading ASCII
// characters are looked at: they keep their place in the collation no matter
// which characters follow.
func prefixed(text []byte, raw bool) []Interval {
	prefix, _ := doc.Unquote(text) // canonical
	if !raw {
		if i := strings.IndexFunc(prefix, func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
			prefix = prefix[:i]
		}
	}
	lo := newBound(doc.AppendString(nil, prefix), raw)
	hi := Bound{Text: doc.AppendString(nil, prefix+"\uffff")}
	if raw {
		hi.Key = append(bytes.Clone(lo.Key), 0xff) // in no UTF-8
		return []Interval{{Lo: lo, Hi: hi}}
	}
	primary := lo.Key[:len(lo.Key)-1]
	if i := bytes.IndexByte(primary[1:], levelEnd); i >= 0 {
		primary = primary[:1+i]
	}
	hi.Key = append(bytes.Clone(primary), strings.Repeat("\xff", longestPrimary+1)...)
	return []Interval{{Lo: lo, Hi: hi}}
}

// Of the collation keys of strings.
const (
	levelEnd       = 1 // behind the primary weights
	longestPrimary = 4 // bytes of one weight
)

func newBound(text []byte, raw bool) Bound {
	if raw {
		return Bound{Text: text, Key: IDKey(text)}
	}
	key, _ := collate.AppendKey(nil, text) // canonical
	return Bound{Text: text, Key: key}
}

// IDKey returns what orders a value among document ids: strings by their bytes,
// which follow a one, and behind every other value.
func IDKey(text []byte) []byte {
	s, ok := doc.Unquote(text)
	if !ok {
		return []byte{0}
	}
	return append([]byte{1}, s...)
}

// before reports whether an interval that ends at hi lies before one that begins
// at lo, without a value in common.
func before(hi, lo Bound) bool {
	return hi.Key != nil && lo.Key != nil && bytes.Compare(hi.Key, lo.Key) < 0
}

// lower reports whether one end is lower than another; both are there.
func lower(a, b Bound) bool { return bytes.Compare(a.Key, b.Key) < 0 }

// union sorts intervals and joins those that have values in common.
func union(list []Interval) []Interval {
	slices.SortStableFunc(list, func(a, b Interval) int { return bytes.Compare(a.Lo.Key, b.Lo.Key) })
	out := list[:0]
	for _, v := range list {
		if v.Hi.Key != nil && v.Lo.Key != nil && lower(v.Hi, v.Lo) {
			continue
		}
		if n := len(out); n > 0 && !before(out[n-1].Hi, v.Lo) {
			if last := &out[n-1]; last.Hi.Key != nil && (v.Hi.Key == nil || lower(last.Hi, v.Hi)) {
				last.Hi = v.Hi
			}
			continue
		}
		out = append(out, v)
	}
	return out
}

// intersect returns what two ordered lists have in common.
func intersect(a, b []Interval) []Interval {
	var out []Interval
	for i, j := 0, 0; i < len(a) && j < len(b); {
		v := a[i]
		if b[j].Lo.Key != nil && (v.Lo.Key == nil || lower(v.Lo, b[j].Lo)) {
			v.Lo = b[j].Lo
		}
		if b[j].Hi.Key != nil && (v.Hi.Key == nil || lower(b[j].Hi, v.Hi)) {
			v.Hi = b[j].Hi
		}
		if !before(v.Hi, v.Lo) {
			out = append(out, v)
		}
		if a[i].Hi.Key != nil && (b[j].Hi.Key == nil || lower(a[i].Hi, b[j].Hi)) {
			i++
		} else {
			j++
		}
	}
	return out
}
