package plan

import (
	"slices"
	"strings"

	"divan/shard/query"
	"divan/shard/query/text"
)

// TextPlan is a request to an index of full text.
type TextPlan struct {
	Query string     // in the language of _search; a Plan with Nothing has none
	Sort  []TextSort // none: by relevance
	Limit int        // rows of the answer; with Find.Count there is no limit
}

// TextSort is a part of an order.
type TextSort struct {
	Field  string // the name of a field of the index
	Number bool   // its values are numbers; otherwise strings
	Desc   bool
}

// show makes a query of the selector if there is an index of full text. The error is that of
// text.Explain, and of an operator that such an index does not know when one is needed.
func (c *chooser) show(list []*Index) (err error) {
	if !slices.ContainsFunc(list, func(x *Index) bool { return x.text != nil }) {
		return nil
	}
	if c.shown, err = text.Explain(c.find.Selector); err != nil {
		return err
	}
	needed := c.find.Selector.Text() || slices.ContainsFunc(list, func(x *Index) bool { return x.text != nil && x.named(c.find.UseIndex) })
	if c.shown.KeyMap && needed {
		return refusal("invalid_operator", "Invalid text operator: $keyMapMatch")
	}
	return nil
}

// covered reports whether an index of full text has the fields that the query names. One of
// all fields is asked for $default also when it has no such field: it finds nothing.
func (c *chooser) covered(x *Index) bool {
	if c.shown.KeyMap || c.shown.Default && !x.text.fallback && x.text.of.Fields != nil {
		return false
	}
	for _, name := range c.shown.Fields {
		if _, ok := x.text.of.Fields[name]; !ok && x.text.of.Fields != nil {
			return false
		}
	}
	return true
}

// textPlan returns how the chosen index, of full text, is asked.
func (c *chooser) textPlan() (*Plan, error) {
	f, x := c.find, c.winner.Index
	sort, err := c.textSort()
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Index: x, Desc: f.Descending(), After: f.Bookmark, Ignored: c.ignored(), Warnings: c.warnings(),
		Text: &TextPlan{Sort: sort, Limit: c.textLimit()}, fingerprint: x.fingerprint(f.Descending()),
	}
	if q := text.Search(f.Selector, x.text.of); q != nil {
		p.Text.Query = q.String()
	} else {
		p.Nothing = true
	}
	return p, nil
}

// textLimit returns how many rows the answer may have.
func (c *chooser) textLimit() int { return min(c.find.Limit, c.db.TextLimits[c.winner.Kind-Text]) }

// textSort returns the order in the fields of the index.
func (c *chooser) textSort() ([]TextSort, error) {
	out := make([]TextSort, 0, len(c.find.Sort))
	for _, column := range c.find.Sort {
		s, ok := c.sortField(column)
		if !ok {
			return nil, refusal("text_sort_error",
				"Unspecified or ambiguous sort type. Try appending :number or :string to the sort field. "+column.Name)
		}
		out = append(out, s)
	}
	return out, nil
}

// sortField returns the field of the index that a column is. Without a type at its end it is
// the type of the values that the selector compares it with, if that is one.
func (c *chooser) sortField(column Column) (s TextSort, ok bool) {
	path, isNumber := strings.CutSuffix(column.Name, ":number")
	isString := false
	if !isNumber {
		path, isString = strings.CutSuffix(column.Name, ":string")
	}
	name, err := query.AppendTextPath(nil, path)
	if err != nil {
		return s, false
	}
	number, str := string(name)+query.TextNumber, string(name)+query.TextString
	if !isNumber && !isString && c.winner.Kind == Text {
		isNumber, isString = slices.Contains(c.shown.Fields, number), slices.Contains(c.shown.Fields, str)
	}
	if isNumber == isString {
		return s, false
	}
	s = TextSort{Field: str, Number: isNumber, Desc: column.Desc}
	if isNumber {
		s.Field = number
	}
	return s, true
}

// appendText appends a part of an order as _explain shows it.
func (s *TextSort) appendText(dst string, kind Kind) string {
	if s.Desc {
		dst += "-"
	}
	dst += s.Field
	switch {
	case kind == Nouveau:
		return dst
	case s.Number:
		return dst + "<number>"
	default:
		return dst + "<string>"
	}
}
