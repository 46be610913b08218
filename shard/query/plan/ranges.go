package plan

import (
	"bytes"
	"slices"

	"divan/shard/query"
	"divan/storage/collate"
)

// Range is the keys from Lo to Hi, both included: sort keys of an index, bytes of
// ids of _all_docs. Hi may be above every key, never a key itself that more rows
// than its own begin with.
type Range struct {
	Lo []byte
	Hi []byte // nil: no end
}

// maxRanges bounds how many ranges a query reads. Values beyond are not told
// apart.
const maxRanges = 10_000

// above is greater than every byte that a sort key goes on with.
const above = 0xff

// ranges returns what has to be read of an index; nothing says that no document
// matches.
func ranges(f *Find, x *Index) (list []Range, nothing bool) {
	if x.AllDocs() {
		list = idRanges(f.Selector.Intervals("_id", true))
	} else {
		list = x.keyRanges(f.Selector)
	}
	if len(list) == 1 && list[0].Lo == nil && list[0].Hi == nil {
		return nil, false
	}
	return list, len(list) == 0
}

// intervals returns what bounds a column of the index.
func (x *Index) intervals(sel *query.Selector, column string) []query.Interval {
	list := sel.Intervals(column, true)
	if column != "_id" || x.AllDocs() {
		return list
	}
	// Selectors order ids by their bytes, the index by collation: only the same
	// id has the same place in both.
	for i := range list {
		v := &list[i]
		if !v.Point() {
			return []query.Interval{{}}
		}
		v.Lo.Key, _ = collate.AppendKey(nil, v.Lo.Text) // canonical
		v.Hi = v.Lo
	}
	slices.SortFunc(list, func(a, b query.Interval) int { return bytes.Compare(a.Lo.Key, b.Lo.Key) })
	return slices.CompactFunc(list, func(a, b query.Interval) bool { return bytes.Equal(a.Lo.Key, b.Lo.Key) })
}

// keyRanges makes ranges of keys of the intervals of the columns: as long as the
// values of a column are told one by one, the next column narrows each further.
func (x *Index) keyRanges(sel *query.Selector) []Range {
	if len(x.Columns) == 0 || query.Full(x.intervals(sel, x.Columns[0].Name)) {
		return []Range{{}}
	}
	array, _ := collate.AppendKey(nil, []byte("[]"))
	open, closed := [][]byte{array[:1]}, []Range(nil)
	for _, column := range x.Columns {
		list := x.intervals(sel, column.Name)
		if query.Full(list) {
			break
		}
		if len(list) > 0 && len(open)*len(list)+len(closed) > maxRanges {
			list = []query.Interval{{Lo: list[0].Lo, Hi: list[len(list)-1].Hi}}
		}
		var next [][]byte
		for _, prefix := range open {
			for _, v := range list {
				lo := join(prefix, v.Lo.Key)
				if v.Point() {
					next = append(next, lo)
				} else {
					closed = append(closed, Range{Lo: lo, Hi: append(join(prefix, v.Hi.Key), above)})
				}
			}
		}
		open = next
	}
	for _, prefix := range open {
		closed = append(closed, Range{Lo: prefix, Hi: join(prefix, []byte{above})})
	}
	slices.SortFunc(closed, func(a, b Range) int { return bytes.Compare(a.Lo, b.Lo) })
	return closed
}

func join(a, b []byte) []byte {
	out := make([]byte, 0, len(a)+len(b)+1)
	return append(append(out, a...), b...)
}

// idRanges makes ranges of ids of intervals of query.IDKey.
func idRanges(list []query.Interval) []Range {
	var out []Range
	for _, v := range list {
		r := Range{Lo: idOf(v.Lo.Key), Hi: idOf(v.Hi.Key)}
		if v.Hi.Key != nil && r.Hi == nil {
			continue // only what is no id
		}
		out = append(out, r)
	}
	return out
}

// idOf returns the id of a query.IDKey; nil when that is before all ids.
func idOf(key []byte) []byte {
	if len(key) == 0 || key[0] == 0 {
		return nil
	}
	return slices.Clip(key[1:])
}
