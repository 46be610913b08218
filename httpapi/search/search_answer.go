package search

import (
	"strconv"

	"divan/cluster/search"
	"divan/httpapi/core"
	shardsearch "divan/shard/search"
	"divan/storage/doc"
)

// searchAnswer writes the answer of a query of _search.
type searchAnswer struct {
	c      *core.Call
	params *searchParams
	result *search.Found
	docs   *documents // nil: without documents
	out    *core.Stream
}

func appendString(s string) []byte { return doc.AppendString(nil, s) }

func (a *searchAnswer) write() error {
	for i, counts := range a.result.Counts {
		if !counts.Known {
			return bad("dim \"" + a.params.counts[i] + "\" does not exist")
		}
	}
	if a.params.docs {
		a.docs = newDocuments(a.c)
	}
	a.out = a.c.Stream("")
	if a.params.groupField != nil {
		return a.groups()
	}
	a.out.Buf = strconv.AppendUint(append(a.out.Buf, `{"total_rows":`...), a.result.Total, 10)
	a.out.Buf = append(a.out.Buf, `,"bookmark":"`...)
	a.out.Buf = search.AppendNext(a.out.Buf, a.result, a.params.bookmark)
	a.out.Buf = append(a.out.Buf, `","rows":`...)
	if err := a.rows(a.result.Hits); err != nil {
		return err
	}
	if a.params.counted {
		if err := a.counts(); err != nil {
			return err
		}
	}
	if a.params.ranged {
		a.ranges()
	}
	a.out.Buf = append(a.out.Buf, "}\n"...)
	return a.out.Close()
}

// rows writes hits as a list.
func (a *searchAnswer) rows(hits []shardsearch.Hit) error {
	a.out.Buf = append(a.out.Buf, '[')
	for i := range hits {
		if i > 0 {
			a.out.Buf = append(a.out.Buf, ',')
		}
		if err := a.row(hits, i); err != nil {
			return err
		}
	}
	a.out.Buf = append(a.out.Buf, ']')
	return nil
}

func (a *searchAnswer) row(hits []shardsearch.Hit, i int) error {
	h := &hits[i]
	a.out.Buf = doc.AppendString(append(a.out.Buf, `{"id":`...), h.ID)
	a.out.Buf = append(a.out.Buf, `,"order":[`...)
	for k := range max(1, len(a.params.sort.parts)) {
		a.out.Buf = append(a.value(h, k), ',')
		if err := a.out.Spill(); err != nil { // texts may be long, and many
			return err
		}
	}
	a.out.Buf = append(a.out.Buf, `0],"fields":`...)
	a.out.Buf = appendFields(a.out.Buf, h, true)
	if a.params.highlight.Fields != nil {
		a.highlights(h)
	}
	if a.docs != nil {
		if err := a.docs.write(a.out, hits, i); err != nil {
			return err
		}
	}
	a.out.Buf = append(a.out.Buf, '}')
	return a.out.Spill()
}

// value appends what a hit is ordered by.
func (a *searchAnswer) value(h *shardsearch.Hit, part int) []byte {
	by, v := shardsearch.ByScore, &h.Order[0]
	if len(a.params.sort.parts) > 0 {
		by, v = a.params.sort.parts[part].By, &h.Order[a.params.sort.from[part]]
	}
	switch {
	case by == shardsearch.ByString && v.Missing:
		return append(a.out.Buf, "null"...)
	case by == shardsearch.ByString || by == shardsearch.ByID:
		return doc.AppendString(a.out.Buf, v.Text)
	default:
		return doc.AppendFloat(a.out.Buf, v.Number)
	}
}

func (a *searchAnswer) highlights(h *shardsearch.Hit) {
	dst := append(a.out.Buf, `,"highlights":{`...)
	for i := range h.Highlights {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(doc.AppendString(dst, h.Highlights[i].Field), ':')
		dst = core.AppendStrings(dst, h.Highlights[i].Pieces)
	}
	a.out.Buf = append(dst, '}')
}

func (a *searchAnswer) counts() error {
	a.out.Buf = append(a.out.Buf, `,"counts":{`...)
	for i, field := range a.params.counts {
		if i > 0 {
			a.out.Buf = append(a.out.Buf, ',')
		}
		a.out.Buf = append(doc.AppendString(a.out.Buf, field), ":{"...)
		for k, c := range a.result.Counts[i].Values {
			if k > 0 {
				a.out.Buf = append(a.out.Buf, ',')
			}
			a.out.Buf = strconv.AppendUint(append(doc.AppendString(a.out.Buf, c.Value), ':'), c.Count, 10)
			if err := a.out.Spill(); err != nil {
				return err
			}
		}
		a.out.Buf = append(a.out.Buf, '}')
	}
	a.out.Buf = append(a.out.Buf, '}')
	return nil
}

func (a *searchAnswer) ranges() {
	dst := append(a.out.Buf, `,"ranges":{`...)
	for i, of := range a.params.ranges {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(doc.AppendString(dst, of.Field), ":{"...)
		for k, r := range of.Ranges {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendUint(append(doc.AppendString(dst, r.Label), ':'), a.result.Ranges[i][k], 10)
		}
		dst = append(dst, '}')
	}
	a.out.Buf = append(dst, '}')
}

// groups writes the rest of an answer in groups. group_by, the older name, has older names of
// members.
func (a *searchAnswer) groups() error {
	rows, total := `,"rows":`, `"total_rows":`
	if a.params.oldGroups {
		rows, total = `,"hits":`, `"total_hits":`
	}
	a.out.Buf = strconv.AppendUint(append(append(a.out.Buf, '{'), total...), a.result.Total, 10)
	if a.params.oldGroups {
		var grouped uint64
		for i := range a.result.Groups {
			grouped += a.result.Groups[i].Total
		}
		a.out.Buf = strconv.AppendUint(append(a.out.Buf, `,"total_grouped_hits":`...), grouped, 10)
	}
	a.out.Buf = append(a.out.Buf, `,"groups":[`...)
	for i := range a.result.Groups {
		g := &a.result.Groups[i]
		if i > 0 {
			a.out.Buf = append(a.out.Buf, ',')
		}
		a.out.Buf = append(a.out.Buf, `{"by":`...)
		if g.Missing {
			a.out.Buf = append(a.out.Buf, "null"...)
		} else {
			a.out.Buf = doc.AppendString(a.out.Buf, g.By)
		}
		a.out.Buf = strconv.AppendUint(append(append(a.out.Buf, ','), total...), g.Total, 10)
		a.out.Buf = append(a.out.Buf, rows...)
		if err := a.rows(g.Hits); err != nil {
			return err
		}
		a.out.Buf = append(a.out.Buf, '}')
	}
	a.out.Buf = append(a.out.Buf, "]}\n"...)
	return a.out.Close()
}

// appendFields appends the stored fields of a hit as an object, in their order. Several of one
// name become a list: of _search the last one first.
func appendFields(dst []byte, h *shardsearch.Hit, lastFirst bool) []byte {
	// next is the number of the next field of the same name in the order of the list; -1: none.
	next, ends := make([]int, len(h.Fields)), make(map[string]int, len(h.Fields))
	first := make([]bool, len(h.Fields))
	for i := range h.Fields {
		name := h.Fields[i].Name
		last, again := ends[name]
		first[i], next[i], ends[name] = !again, -1, i
		switch {
		case again && lastFirst:
			next[i] = last
		case again:
			next[last] = i
		}
	}
	dst = append(dst, '{')
	for i := range h.Fields {
		if !first[i] {
			continue
		}
		if i > 0 { // the first one of all is the first of its name
			dst = append(dst, ',')
		}
		name := h.Fields[i].Name
		dst = append(doc.AppendString(dst, name), ':')
		if ends[name] == i {
			dst = append(dst, h.Fields[i].Value...)
			continue
		}
		at := i
		if lastFirst {
			at = ends[name]
		}
		for separator := byte('['); at >= 0; at, separator = next[at], ',' {
			dst = append(append(dst, separator), h.Fields[at].Value...)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}
