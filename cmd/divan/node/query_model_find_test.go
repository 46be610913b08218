package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"divan/shard/query"
)

// modelFields are the members that selectors, indexes and sorts name.
func modelFields() []string { return []string{"k", "g", "n", "s", "v", "sub.a", "_id"} }

func (m *queryModel) field(name string) string {
	return rapid.SampledFrom(modelFields()).Draw(m.T, name)
}

// value draws something to compare a field with.
func (m *queryModel) value(field string) string {
	switch field {
	case "g":
		return fmt.Sprint(rapid.IntRange(0, 3).Draw(m.T, "g"))
	case "n":
		return rapid.SampledFrom([]string{"1", "2.5", "-3", "1000000", "0.25", "7", "0"}).Draw(m.T, "n")
	case "s":
		return rapid.SampledFrom([]string{`"a"`, `"B"`, `"ab"`, `"é"`, `"z"`, `""`}).Draw(m.T, "s")
	case "_id":
		return fmt.Sprintf("%q", m.id())
	default:
		return rapid.SampledFrom(modelTexts()).Draw(m.T, "value")
	}
}

func (m *queryModel) values(field string) string {
	var out []string
	for range rapid.IntRange(0, 4).Draw(m.T, "values") {
		out = append(out, m.value(field))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// condition draws what is wanted of a field.
func (m *queryModel) condition(field string) string {
	switch op := rapid.SampledFrom([]string{
		"", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$lte", "between", "between", "$in", "$in", "$nin", "$exists", "$type", "$beginsWith", "$regex", "$size", "$all", "$mod",
		"$not", "$elemMatch",
	}).Draw(m.T, "operator"); op {
	case "":
		if v := m.value(field); !strings.HasPrefix(v, "{") { // an object would be a path
			return v
		}
		return "1"
	case "between":
		return fmt.Sprintf(`{"$gte":%s,%q:%s}`, m.value(field), rapid.SampledFrom([]string{"$lt", "$lte"}).Draw(m.T, "end"), m.value(field))
	case "$in", "$nin", "$all":
		return fmt.Sprintf(`{%q:%s}`, op, m.values(field))
	case "$exists":
		return fmt.Sprintf(`{"$exists":%t}`, rapid.Bool().Draw(m.T, "exists"))
	case "$type":
		return fmt.Sprintf(`{"$type":%q}`, rapid.SampledFrom([]string{"null", "boolean", "number", "string", "array", "object"}).Draw(m.T, "type"))
	case "$beginsWith":
		return fmt.Sprintf(`{"$beginsWith":%q}`, rapid.SampledFrom([]string{"", "a", "d0", "é", "b:"}).Draw(m.T, "beginning"))
	case "$regex":
		return fmt.Sprintf(`{"$regex":%q}`, rapid.SampledFrom([]string{"^a", "b", "1$", "."}).Draw(m.T, "regex"))
	case "$size":
		return fmt.Sprintf(`{"$size":%d}`, rapid.IntRange(0, 2).Draw(m.T, "size"))
	case "$mod":
		return fmt.Sprintf(`{"$mod":[%d,%d]}`, rapid.IntRange(1, 3).Draw(m.T, "divisor"), rapid.IntRange(0, 2).Draw(m.T, "remainder"))
	case "$not":
		return fmt.Sprintf(`{"$not":{"$gt":%s}}`, m.value(field))
	case "$elemMatch":
		return fmt.Sprintf(`{"$elemMatch":{"$gte":%s}}`, m.value(field))
	default:
		return fmt.Sprintf(`{%q:%s}`, op, m.value(field))
	}
}

// fields draws some, often the columns of an index.
func (m *queryModel) fields() []string {
	if len(m.indexes) > 0 && rapid.Bool().Draw(m.T, "columns of an index") {
		return pick(m.T, m.indexes, "index")
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(modelFields()), 0, 3, rapid.ID).Draw(m.T, "fields")
}

// selector draws a selector.
func (m *queryModel) selector(depth int) string {
	form := 0
	if depth > 0 {
		form = rapid.IntRange(0, 6).Draw(m.T, "selector")
	}
	if form < 4 {
		var out []string
		for _, f := range m.fields() {
			out = append(out, fmt.Sprintf("%q:%s", f, m.condition(f)))
		}
		return "{" + strings.Join(out, ",") + "}"
	}
	var parts []string
	for range rapid.IntRange(1, 3).Draw(m.T, "parts") {
		parts = append(parts, m.selector(depth-1))
	}
	combined := fmt.Sprintf("%q:[%s]", rapid.SampledFrom([]string{"$or", "$or", "$and", "$nor"}).Draw(m.T, "combination"), strings.Join(parts, ","))
	if form == 6 {
		f := m.field("field beside")
		return fmt.Sprintf("{%q:%s,%s}", f, m.condition(f), combined)
	}
	return "{" + combined + "}"
}

// addIndex asks for a Mango index.
func (m *queryModel) addIndex() {
	fields := rapid.SliceOfNDistinct(rapid.SampledFrom(modelFields()), 1, 3, rapid.ID).Draw(m.T, "columns")
	partial := ""
	if rapid.IntRange(0, 3).Draw(m.T, "partial") == 0 {
		partial = `,"partial_filter_selector":` + m.selector(1)
	}
	n := len(m.indexes)
	m.must("POST", "/db/_index", fmt.Sprintf(`{"ddoc":"i%d","name":"x%d","partitioned":%t,"index":{"fields":%s%s}}`, n%3, n,
		m.partitioned && n%3 > 0, list(fields), partial), "200")
	m.indexes = append(m.indexes, fields)
}

func list(names []string) string {
	text, _ := json.Marshal(names) // strings
	return string(text)
}

// findQuestion is one query by selector.
type findQuestion struct {
	path                string // of the database or of a partition
	partition, selector string
	fields              []string
	sort                []string
	conflicts           bool
	skip, limit         int
	rest                string // more members
}

// object is the body of a request.
func (q *findQuestion) object(more string) string {
	return `{"selector":` + q.selector + q.rest + more + "}"
}

func (m *queryModel) drawFind() *findQuestion {
	q := &findQuestion{path: "/db", selector: m.selector(2), limit: 25}
	if m.partitioned && rapid.IntRange(0, 2).Draw(m.T, "in a partition") > 0 {
		q.partition = rapid.SampledFrom([]string{"a", "b", "none"}).Draw(m.T, "partition")
		q.path = "/db/_partition/" + q.partition
	}
	set := func(name string, value any) { q.rest += fmt.Sprintf(",%q:%v", name, value) }
	if rapid.IntRange(0, 2).Draw(m.T, "sort?") == 0 {
		var sort []string
		dir := rapid.SampledFrom([]string{"asc", "desc"}).Draw(m.T, "direction")
		q.sort = rapid.SliceOfNDistinct(rapid.SampledFrom(modelFields()), 1, 2, rapid.ID).Draw(m.T, "sort")
		for _, f := range q.sort {
			sort = append(sort, fmt.Sprintf("{%q:%q}", f, dir))
		}
		set("sort", "["+strings.Join(sort, ",")+"]")
	}
	if rapid.IntRange(0, 2).Draw(m.T, "fields?") == 0 {
		q.fields = rapid.SliceOfNDistinct(rapid.SampledFrom(append(modelFields(), "_rev", "bad")), 1, 3, rapid.ID).Draw(m.T, "projection")
		set("fields", list(q.fields))
	}
	if len(m.indexes) > 0 && rapid.IntRange(0, 2).Draw(m.T, "use_index?") == 0 {
		n := rapid.IntRange(0, len(m.indexes)-1).Draw(m.T, "use_index")
		set("use_index", fmt.Sprintf(`["i%d","x%d"]`, n%3, n))
	}
	if rapid.IntRange(0, 5).Draw(m.T, "r?") == 0 {
		set("r", 2)
	}
	if q.conflicts = rapid.IntRange(0, 4).Draw(m.T, "conflicts") == 0; q.conflicts {
		set("conflicts", true)
	}
	if rapid.IntRange(0, 4).Draw(m.T, "fresh") == 0 {
		set("update", true)
	}
	return q
}

// find asks for what a selector matches: all of it, its number, or page by page.
func (m *queryModel) find() {
	q := m.drawFind()
	status, explained := m.must("POST", q.path+"/_explain", q.object(""), "200", "400")
	if status != "200" {
		if _, text := m.must("POST", q.path+"/_find", q.object(""), "400"); text != explained {
			m.Fatalf("%s: %s, explained as %s", q.object(""), text, explained)
		}
		return
	}
	want, ok := m.expectFind(q, explained)
	if !ok {
		m.must("POST", q.path+"/_find", q.object(""), "400")
		return
	}
	switch rapid.IntRange(0, 3).Draw(m.T, "way") {
	case 0:
		m.count(q, len(want))
	case 1:
		m.pages(q, want)
	default:
		if rapid.Bool().Draw(m.T, "skip?") {
			q.skip = rapid.IntRange(0, 6).Draw(m.T, "skip")
			q.rest += fmt.Sprintf(`,"skip":%d`, q.skip)
		}
		if rapid.IntRange(0, 3).Draw(m.T, "limit?") > 0 {
			q.limit = rapid.SampledFrom([]int{0, 1, 3, 10, 2000}).Draw(m.T, "limit")
			q.rest += fmt.Sprintf(`,"limit":%d`, q.limit)
		}
		want = want[min(q.skip, len(want)):]
		m.compareFound(q, m.ask(q, "").Docs, want[:min(q.limit, len(want))])
	}
}

// findAnswer is what comes.
type findAnswer struct {
	Docs     []json.RawMessage
	Bookmark string
	Stats    *struct {
		Results int `json:"results_returned"`
	} `json:"execution_stats"`
}

func (m *queryModel) ask(q *findQuestion, more string) (out findAnswer) {
	m.Helper()
	stats := rapid.IntRange(0, 3).Draw(m.T, "stats") == 0
	if stats {
		more += `,"execution_stats":true`
	}
	_, text := m.must("POST", q.path+"/_find", q.object(more), "200")
	if err := json.Unmarshal([]byte(text), &out); err != nil || out.Stats != nil && out.Stats.Results != len(out.Docs) {
		m.Fatalf("%s: %s, %v", q.object(more), text, err)
	}
	return out
}

func (m *queryModel) count(q *findQuestion, want int) {
	m.Helper()
	var got struct{ Count *int }
	_, text := m.must("POST", q.path+"/_find", q.object(`,"count":true`), "200")
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Count == nil || *got.Count != want {
		m.Fatalf("%s: %s, want %d", q.object(""), text, want)
	}
}

// pages reads an answer with bookmarks, from any node.
func (m *queryModel) pages(q *findQuestion, want []foundRow) {
	m.Helper()
	limit := max(rapid.IntRange(1, 5).Draw(m.T, "of a page"), len(want)/8)
	q.rest += fmt.Sprintf(`,"limit":%d`, limit)
	bookmark := ""
	for page := 0; ; page++ {
		got := m.ask(q, fmt.Sprintf(`,"bookmark":%q`, bookmark))
		m.compareFound(q, got.Docs, want[:min(limit, len(want))])
		want, bookmark = want[len(got.Docs):], got.Bookmark
		if len(got.Docs) == 0 {
			return
		}
	}
}

// compareFound fails unless an answer has certain documents, in their order.
func (m *queryModel) compareFound(q *findQuestion, got []json.RawMessage, want []foundRow) {
	m.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !sameJSON(got[i], want[i].text) {
			var texts []string
			for _, w := range want {
				texts = append(texts, string(w.text))
			}
			m.Fatalf("%s %s: %d documents, want %d; from %d on:\n got %s\nwant %s", q.path, q.object(""), len(got), len(want), i,
				got[min(i, len(got)):min(i+4, len(got))], texts[min(i, len(want)):min(i+4, len(want))])
		}
	}
}

// foundRow is a document of the model's answer.
type foundRow struct {
	id   string
	sort []byte
	text []byte
}

// expectFind computes the answer without skip and limit: it looks at every document,
// and knows of the index only in which order rows come, and which columns documents
// must have. ok is false when no index gives that order.
func (m *queryModel) expectFind(q *findQuestion, explained string) (out []foundRow, ok bool) {
	m.Helper()
	var plan struct {
		Index struct {
			Type string
			Def  struct {
				Fields  []map[string]string
				Partial json.RawMessage `json:"partial_filter_selector"`
			}
		}
		Mrargs struct{ Direction string }
	}
	if err := json.Unmarshal([]byte(explained), &plan); err != nil {
		m.Fatalf("%s: %v", explained, err)
	}
	if plan.Index.Type == "" { // it is null
		return nil, false
	}
	selector, partial := m.parse(q.selector), m.parse("{}")
	if plan.Index.Def.Partial != nil {
		partial = m.parse(string(plan.Index.Def.Partial))
	}
	for _, d := range m.live() {
		if q.partition != "" && !strings.HasPrefix(d.id, q.partition+":") {
			continue
		}
		if !m.matches(selector, d) || !m.matches(partial, d) {
			continue
		}
		row := foundRow{id: d.id}
		if plan.Index.Type == "json" {
			var column []byte
			for _, c := range plan.Index.Def.Fields {
				for name := range c {
					if column = valueAt(d, name); column == nil && !slices.Contains(q.sort, name) {
						m.Fatalf("%s: %s matches, but is not in the index that is used: %s", q.object(""), d.id, explained)
					}
					row.sort = append(append(row.sort, ','), column...)
				}
				if column == nil {
					break
				}
			}
			if column == nil {
				continue // what has no value to sort by is left out
			}
			row.sort = m.sortKey(false, "["+string(row.sort[1:])+"]")
		}
		row.text = m.project(q, d)
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b foundRow) int {
		return cmp.Or(bytes.Compare(a.sort, b.sort), strings.Compare(a.id, b.id))
	})
	if plan.Mrargs.Direction == "rev" {
		slices.Reverse(out)
	}
	return out, true
}

func (m *queryModel) parse(selector string) *query.Selector {
	m.Helper()
	s, err := query.Parse([]byte(selector))
	if err != nil {
		m.Fatalf("%s: %v", selector, err)
	}
	return s
}

func (m *queryModel) matches(s *query.Selector, d *modelDocument) bool {
	m.Helper()
	ok, err := s.Match(query.NewWork(context.Background(), nil), []byte(d.text("")))
	if err != nil {
		m.Fatal(err)
	}
	return ok
}

// valueAt returns a member of a document by its path; nil when it is not there.
func valueAt(d *modelDocument, path string) []byte {
	at := json.RawMessage(d.text(""))
	for name := range strings.SplitSeq(path, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(at, &members) != nil || members[name] == nil {
			return nil
		}
		at = members[name]
	}
	return at
}

// project returns what a question wants of a document.
func (m *queryModel) project(q *findQuestion, d *modelDocument) []byte {
	if q.fields == nil {
		return []byte(d.text(d.lost(q.conflicts)))
	}
	out := map[string]any{}
	for _, path := range q.fields {
		v := valueAt(d, path)
		if v == nil {
			continue
		}
		if outer, inner, ok := strings.Cut(path, "."); ok {
			out[outer] = map[string]json.RawMessage{inner: v}
		} else {
			out[path] = json.RawMessage(v)
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		m.Fatalf("%v", err)
	}
	return text
}
