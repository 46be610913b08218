package plan

import (
	"slices"
	"strconv"

	"divan/shard/query"
	"divan/storage/doc"
)

// maxKey stands in _explain for a key above all others.
const maxKey = `"<MAX>"`

// AppendExplain appends the answer of _explain: what Choose would do, with the
// range of keys that CouchDB would read. A query that needs an index which is not
// there has null as its index; other refusals are errors.
func AppendExplain(dst []byte, f *Find, indexes []*Index, db Database) ([]byte, error) {
	c, err := newChooser(f, indexes, db)
	if err == nil && c.winner == nil && f.Bookmark != nil { // of an index that is gone: only _find refuses it
		start := *f
		start.Bookmark = nil
		c, err = newChooser(&start, indexes, db)
	}
	if err != nil {
		return nil, err
	}
	if c.winner == nil && len(f.Sort) == 0 {
		return nil, c.choiceless
	}
	dst = append(dst, `{"dbname":`...)
	dst = doc.AppendString(dst, db.Name)
	dst = append(dst, `,"index":`...)
	if c.winner == nil {
		dst = append(dst, "null"...)
	} else {
		dst = c.winner.AppendJSON(dst)
	}
	dst = append(dst, `,"partitioned":`...)
	dst = appendBool(dst, db.Partitioned)
	dst = append(dst, `,"selector":`...)
	dst = f.Selector.Append(dst)
	dst = f.appendOptions(append(dst, `,"opts":`...))
	dst = append(dst, `,"limit":`...)
	limit := f.Limit
	if c.winner != nil && c.winner.text != nil {
		limit = c.textLimit()
	}
	dst = strconv.AppendInt(dst, int64(limit), 10)
	dst = append(dst, `,"skip":`...)
	dst = strconv.AppendInt(dst, int64(f.Skip), 10)
	dst = append(append(dst, `,"fields":`...), f.fieldList...)
	dst = c.appendCandidates(append(dst, `,"index_candidates":[`...))
	dst = c.appendHints(append(dst, `],"selector_hints":[`...))
	dst = append(dst, ']')
	switch {
	case c.winner == nil:
	case c.winner.text != nil:
		if dst, err = c.appendText(dst); err != nil {
			return nil, err
		}
	default:
		dst = c.appendMRArgs(append(dst, `,"mrargs":`...))
		dst = append(dst, `,"covering":`...)
		dst = appendBool(dst, c.winner.covers(f))
	}
	return append(dst, '}'), nil
}

// appendOptions appends the request as it was understood.
func (f *Find) appendOptions(dst []byte) []byte {
	dst = append(dst, `{"use_index":`...)
	dst = appendStrings(dst, f.UseIndex)
	dst = append(dst, `,"bookmark":`...)
	dst = append(dst, f.SentBookmark()...)
	dst = append(dst, `,"limit":`...)
	dst = strconv.AppendInt(dst, int64(f.Limit), 10)
	dst = append(dst, `,"skip":`...)
	dst = strconv.AppendInt(dst, int64(f.Skip), 10)
	dst = append(dst, `,"sort":{`...)
	for i, c := range f.Sort {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = c.append(dst)
	}
	dst = append(append(dst, `},"fields":`...), f.fieldList...)
	dst = append(dst, `,"partition":`...)
	dst = doc.AppendString(dst, f.Partition)
	dst = append(dst, `,"r":`...)
	dst = strconv.AppendInt(dst, int64(f.R), 10)
	stale := "false"
	if f.StaleOK {
		stale = `"ok"`
	}
	dst = append(append(dst, `,"stale":`...), stale...)
	for _, o := range []struct {
		name string
		on   bool
	}{
		{"conflicts", f.Conflicts}, {"update", f.Update}, {"stable", f.Stable}, {"execution_stats", f.Stats}, {"allow_fallback", f.AllowFallback},
	} {
		dst = append(doc.AppendString(append(dst, ','), o.name), ':')
		dst = appendBool(dst, o.on)
	}
	if f.Count {
		dst = append(dst, `,"count":true`...)
	}
	return append(dst, '}')
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = doc.AppendString(dst, s)
	}
	return append(dst, ']')
}

// appendHints appends which fields an index could be made of.
func (c *chooser) appendHints(dst []byte) []byte {
	rest := slices.DeleteFunc(c.find.Selector.Fields(), func(name string) bool { return slices.Contains(c.indexable, name) })
	dst = append(dst, `{"type":"json","indexable_fields":`...)
	dst = appendStrings(dst, c.indexable)
	dst = append(dst, `,"unindexable_fields":`...)
	dst = appendStrings(dst, rest)
	if c.winner != nil && c.winner.text == nil { // beyond CouchDB: $in and $or read several ranges
		list, nothing := ranges(c.find, c.winner.Index)
		n := max(len(list), 1)
		if nothing {
			n = 0
		}
		dst = append(dst, `,"key_ranges":`...)
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	dst = append(dst, '}')
	if c.shown == nil {
		return dst
	}
	dst = append(dst, `,{"type":"text","indexable_fields":`...)
	fields := make([]string, len(c.shown.Fields))
	for i, name := range c.shown.Fields {
		fields[i] = query.DecodeTextName(name)
	}
	return append(appendStrings(dst, fields), `,"unindexable_fields":[]}`...)
}

// appendText appends what an index of full text is asked.
func (c *chooser) appendText(dst []byte) ([]byte, error) {
	sort, err := c.textSort()
	if err != nil {
		return nil, err
	}
	dst = doc.AppendString(append(dst, `,"query":`...), c.shown.Text)
	dst = append(dst, `,"partition":`...)
	if c.find.Partition == "" {
		dst = append(dst, "null"...)
	} else {
		dst = doc.AppendString(dst, c.find.Partition)
	}
	dst = append(dst, `,"sort":`...)
	switch {
	case len(sort) > 0:
		var list []string
		for i := range sort {
			list = append(list, sort[i].appendText("", c.winner.Kind))
		}
		return appendStrings(dst, list), nil
	case c.winner.Kind == Nouveau:
		return append(dst, "null"...), nil
	default:
		return append(dst, `"relevance"`...), nil
	}
}

// appendMRArgs appends the range of keys as the arguments of a view.
func (c *chooser) appendMRArgs(dst []byte) []byte {
	f, x := c.find, c.winner
	start, end := c.display(x.Index)
	direction := "fwd"
	if f.Descending() {
		direction = "rev"
		start, end = end, start
	}
	dst = append(dst, `{"include_docs":`...)
	dst = appendBool(dst, !x.covers(f))
	dst = append(dst, `,"view_type":"map","reduce":false,"partition":`...)
	if f.Partition == "" {
		dst = append(dst, "null"...)
	} else {
		dst = doc.AppendString(dst, f.Partition)
	}
	dst = append(append(dst, `,"start_key":`...), start...)
	dst = append(append(dst, `,"end_key":`...), end...)
	dst = append(append(dst, `,"direction":"`...), direction...)
	dst = append(dst, `","stable":`...)
	dst = appendBool(dst, f.Stable || f.StaleOK)
	dst = append(dst, `,"update":`...)
	dst = appendBool(dst, f.Update && !f.StaleOK)
	if f.Conflicts {
		return append(dst, `,"conflicts":true}`...)
	}
	return append(dst, `,"conflicts":"undefined"}`...)
}

// display returns the range of keys that CouchDB would read, in ascending order.
func (c *chooser) display(x *Index) (start, end []byte) {
	sel := c.find.Selector
	if sel.Nothing() || c.emptyRange(x) {
		return []byte("null"), []byte("null")
	}
	if x.AllDocs() {
		start, end = []byte("null"), []byte(maxKey)
		if list := sel.Intervals("_id", false); len(list) > 0 {
			start, end = textOr(list[0].Lo, start), textOr(list[0].Hi, end)
		}
		return start, end
	}
	var lower, upper [][]byte
	lowerOpen, upperOpen := true, true
	for _, column := range x.Columns {
		if c.impossible != "" || !slices.Contains(c.indexable, column.Name) {
			break
		}
		list := sel.Intervals(column.Name, false)
		if lowerOpen = lowerOpen && list[0].Lo.Text != nil; lowerOpen {
			lower = append(lower, list[0].Lo.Text)
		}
		if upperOpen = upperOpen && list[0].Hi.Text != nil; upperOpen {
			upper = append(upper, list[0].Hi.Text)
		}
	}
	return appendArray(lower), appendArray(append(upper, []byte(maxKey)))
}

func textOr(b query.Bound, otherwise []byte) []byte {
	if b.Text == nil {
		return otherwise
	}
	return b.Text
}

func appendArray(list [][]byte) []byte {
	dst := []byte{'['}
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, v...)
	}
	return append(dst, ']')
}
