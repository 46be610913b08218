package find

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/shard"
	"divan/shard/query"
	"divan/shard/query/plan"
	"divan/shard/view"
	"divan/storage/collate"
	"divan/storage/doc"
)

// design is a design document with indexes on lists of fields.
func design(tb testing.TB, specs ...string) []byte {
	tb.Helper()
	var body []byte
	for _, spec := range specs {
		fields, partial, _ := strings.Cut(spec, "|")
		request := `{"name":"` + strings.ReplaceAll(fields, ",", "-") + `","ddoc":"i","index":{"fields":["` + strings.ReplaceAll(fields, ",", `","`) + `"]}}`
		if partial != "" {
			request = strings.Replace(request, "]}}", `],"partial_filter_selector":`+partial+"}}", 1)
			request = strings.Replace(request, `"name":"`, `"name":"partial-`, 1)
		}
		c, err := plan.ParseCreate([]byte(request))
		if err != nil {
			tb.Fatal(err)
		}
		if body, err = c.AddTo(body); err != nil {
			tb.Fatal(err)
		}
	}
	return body
}

// requestOf makes the request of a plan.
func requestOf(q *plan.Find, p *plan.Plan, def *view.Definition) Request {
	req := Request{Selector: q.Selector.Append(nil), Fields: q.FieldList(), Desc: p.Desc, Conflicts: q.Conflicts, Count: q.Count}
	for _, r := range p.Ranges {
		req.Ranges = append(req.Ranges, Range{Lo: r.Lo, Hi: r.Hi})
	}
	if !p.Index.AllDocs() {
		req.Index = &Index{Signature: def.Signature, Definition: def.Text, Design: "_design/i", View: p.Index.Name}
		if p.Covering {
			req.Index.Covering = p.Index.Names()
		}
	}
	return req
}

// item is a document of the test, in memory.
type item struct {
	id   string
	text []byte // with _id
}

// value draws a value of a field; few, so that equal ones are common.
func value(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"null", "true", "false", "0", "1", "1.0", "2", "-3", "2.5", `""`, `"a"`, `"A"`, `"b"`, `"ab"`, `"aB"`, `"é"`, `"z"`, `"ab￿"`, `"a1"`, `"日"`,
		"[]", "[1]", `["a"]`, "[1,2]", "{}", `{"x":1}`, `{"b":1}`,
	}).Draw(t, "value")
}

func fieldName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "a", "b", "b", "c.d", "_id"}).Draw(t, "field")
}

// document draws a document.
func document(t *rapid.T) string {
	var members []string
	for _, name := range []string{"a", "b", "c"} {
		switch v := value(t); {
		case rapid.IntRange(0, 4).Draw(t, "missing") == 0:
		case name == "c":
			members = append(members, `"c":{"d":`+v+`,"e":1}`)
		default:
			members = append(members, `"`+name+`":`+v)
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// condition draws a condition on a field.
func condition(t *rapid.T, field string) string {
	v := func() string {
		if field == "_id" {
			return rapid.SampledFrom([]string{`"d1"`, `"d3"`, `"D5"`, `"d10"`, "null", `""`, "1"}).Draw(t, "id")
		}
		return value(t)
	}
	op := rapid.SampledFrom([]string{"$eq", "$eq", "$gt", "$gte", "$lt", "$lte", "$ne", "$in", "$in", "$nin", "$exists", "$beginsWith", "$type"}).Draw(t, "operator")
	switch op {
	case "$in", "$nin":
		return fmt.Sprintf(`{"%s":{"%s":[%s,%s]}}`, field, op, v(), v())
	case "$exists":
		return fmt.Sprintf(`{"%s":{"$exists":%t}}`, field, rapid.IntRange(0, 3).Draw(t, "exists") > 0)
	case "$beginsWith":
		return fmt.Sprintf(`{"%s":{"$beginsWith":%s}}`, field, rapid.SampledFrom([]string{`""`, `"a"`, `"d"`, `"aB"`, `"é"`, `"d1"`}).Draw(t, "prefix"))
	case "$type":
		return fmt.Sprintf(`{"%s":{"$type":"%s"}}`, field, rapid.SampledFrom([]string{"string", "number", "null"}).Draw(t, "type"))
	}
	return fmt.Sprintf(`{"%s":{"%s":%s}}`, field, op, v())
}

func selector(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "leaf") == 0 {
		return condition(t, fieldName(t))
	}
	var kids []string
	for range rapid.IntRange(1, 3).Draw(t, "kids") {
		kids = append(kids, selector(t, depth-1))
	}
	op := rapid.SampledFrom([]string{"$and", "$and", "$or", "$nor"}).Draw(t, "combination")
	return `{"` + op + `":[` + strings.Join(kids, ",") + `]}`
}

// TestAnswersAreThoseInMemory compares answers through every index with filtering and
// sorting all documents.
func TestAnswersAreThoseInMemory(t *testing.T) {
	ddoc := design(t, "a", "b", "a,b", "b,a", "c.d,a", "_id,a", "a,c.d,b", `b|{"a":{"$gt":1}}`)
	def, err := view.Parse(ddoc, false)
	if err != nil {
		t.Fatal(err)
	}
	indexes := plan.IndexesOf("_design/i", ddoc, false)
	write := func(rt *rapid.T, l node, revs map[string]doc.Rev) (items []item) {
		var edits []shard.Edit
		for i := range 24 {
			id := fmt.Sprint("d", i)
			if i == 5 {
				id = "D5"
			}
			text := document(rt)
			deleted := rapid.IntRange(0, 7).Draw(rt, "deleted") == 0
			if _, there := revs[id]; !there && deleted {
				deleted = false
			}
			edits = append(edits, shard.Edit{ID: id, Parent: revs[id], Body: []byte(text), Deleted: deleted})
			if !deleted {
				canonical, err := doc.Canonical(nil, []byte(`{"_id":"`+id+`",`+strings.TrimPrefix(text, "{")))
				if text == "{}" {
					canonical, err = []byte(`{"_id":"`+id+`"}`), nil
				}
				if err != nil {
					rt.Fatal(err)
				}
				items = append(items, item{id, canonical})
			}
		}
		for i, rev := range put(rt, l, edits...) {
			if revs[edits[i].ID] = rev; edits[i].Deleted {
				delete(revs, edits[i].ID)
			}
		}
		return items
	}
	used := map[string]int{}
	ask := func(rt *rapid.T, items []item, l node) {
		request := `{"selector":` + selector(rt, 2)
		switch rapid.IntRange(0, 3).Draw(rt, "fields") {
		case 0:
			request += `,"fields":["_id","a","c.d"]`
		case 1:
			request += `,"fields":["_id"]`
		default:
			request += `,"fields":["_id","b","c"]`
		}
		if rapid.Bool().Draw(rt, "sort") {
			direction := rapid.SampledFrom([]string{"asc", "desc"}).Draw(rt, "direction")
			var fields []string
			for _, f := range rapid.SampledFrom([][]string{{"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"c.d"}, {"_id"}}).Draw(rt, "by") {
				fields = append(fields, `{"`+f+`":"`+direction+`"}`)
			}
			request += `,"sort":[` + strings.Join(fields, ",") + `]`
		}
		for _, name := range append([]string{""}, names(indexes)...) {
			one := request
			if name != "" {
				one += `,"use_index":["i","` + name + `"]`
			}
			q, err := plan.ParseFind([]byte(one+"}"), 25)
			if err != nil {
				rt.Skip(err)
			}
			p, err := plan.Choose(q, indexes, plan.Database{})
			if err != nil {
				continue
			}
			if name != "" && p.Index.Name != name {
				continue
			}
			used[p.Index.Name]++
			(&question{l, q, p, def, items, one}).check(rt)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		l, stop := open(rt, memory())
		defer stop()
		put(rt, l, shard.Edit{ID: "_design/i", Body: ddoc})
		revs := map[string]doc.Rev{}
		var items []item
		for range rapid.IntRange(1, 3).Draw(rt, "rounds") {
			items = write(rt, l, revs)
			for range rapid.IntRange(1, 5).Draw(rt, "queries") {
				ask(rt, items, l)
			}
		}
	})
	t.Logf("used: %v", used)
}

func names(list []*plan.Index) []string {
	var out []string
	for _, x := range list {
		out = append(out, x.Name)
	}
	return out
}

// question is a query that is asked of a copy.
type question struct {
	node
	find    *plan.Find
	plan    *plan.Plan
	def     *view.Definition
	items   []item
	request string
}

// check compares one answer with what is in memory, also when it is read in two pages.
func (x *question) check(t *rapid.T) {
	t.Helper()
	l, q, p, def, request := x.node, x.find, x.plan, x.def, x.request
	want := expected(t, q, p, x.items)
	var got []string
	if !p.Nothing {
		got, _ = all(t, l, requestOf(q, p, def))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s by %s (covering %v): %q, want %q", request, p.Index.Name, p.Covering, got, want)
	}
	if len(want) < 2 || p.Nothing {
		return
	}
	req := requestOf(q, p, def)
	req.Limit = rapid.IntRange(1, len(want)-1).Draw(t, "page")
	req.Copy = copyName
	s, err := Open(context.Background(), l.Local, l.views, req)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	var last Position
	n := 0
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Rows {
			last = Position{Sort: bytes.Clone(r.Sort), ID: strings.Clone(r.ID)}
			n++
		}
	}
	s.Close()
	if n != req.Limit {
		t.Fatalf("%s by %s: %d rows of %d", request, p.Index.Name, n, req.Limit)
	}
	req.Limit, req.After = 0, &last
	if rest, _ := all(t, l, req); !slices.Equal(rest, want[n:]) {
		t.Fatalf("%s by %s after %d: %q, want %q", request, p.Index.Name, n, rest, want[n:])
	}
}

// expected filters and sorts in memory.
func expected(t *rapid.T, q *plan.Find, p *plan.Plan, items []item) []string {
	t.Helper()
	type keyed struct {
		item
		key []byte
	}
	var list []keyed
	var key *query.Key
	if !p.Index.AllDocs() {
		var fields []string
		for _, name := range p.Index.Names() {
			fields = append(fields, string(doc.AppendString(nil, name))+`:"asc"`)
		}
		definition := `{"fields":{` + strings.Join(fields, ",") + `}}`
		if strings.HasPrefix(p.Index.Name, "partial-") {
			definition = strings.TrimSuffix(definition, "}") + `,"partial_filter_selector":{"a":{"$gt":1}}}`
		}
		var err error
		if key, err = query.ParseKey([]byte(definition)); err != nil {
			t.Fatal(err)
		}
	}
	for _, it := range items {
		if !matches(t, q.Selector, it.text) {
			continue
		}
		k := keyed{item: it}
		if key != nil {
			text, ok, err := key.Append(query.NewWork(context.Background(), nil), nil, it.text)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue
			}
			if k.key, err = collate.AppendKey(nil, text); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b keyed) int {
		c := cmp.Or(bytes.Compare(a.key, b.key), strings.Compare(a.id, b.id))
		if p.Desc {
			return -c
		}
		return c
	})
	if len(q.Sort) == 0 && key != nil && !strings.HasPrefix(p.Index.Name, "partial-") {
		// No index may hide a document that matches.
		n := 0
		for _, it := range items {
			if matches(t, q.Selector, it.text) {
				n++
			}
		}
		if n != len(list) {
			t.Fatalf("the index %s has %d of %d documents", p.Index.Name, len(list), n)
		}
	}
	var out []string
	for _, k := range list {
		out = append(out, k.id+" "+string(q.Fields.Append(nil, k.text)))
	}
	return out
}

func matches(t *rapid.T, s *query.Selector, document []byte) bool {
	t.Helper()
	ok, err := s.Match(query.NewWork(context.Background(), nil), document)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}
