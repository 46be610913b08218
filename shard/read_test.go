package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"divan/storage/doc"
	"divan/storage/fault"
)

func ids(rows []Row) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return strings.Join(out, " ")
}

// Golden alldocs/01.
func TestAllDocsRanges(t *testing.T) {
	n := start(t, Options{})
	for _, id := range []string{"_design/x", "a", "b", "c", "d", "e"} {
		n.must(n.edit(id, "", `{"id":"`+id+`"}`))
	}
	n.must(n.remove("gone", ""))
	all := "_design/x a b c d e"
	for _, c := range []struct {
		req    DocsRequest
		want   string
		before uint64
	}{
		{DocsRequest{}, all, 0},
		{DocsRequest{Desc: true}, "e d c b a _design/x", 0},
		{DocsRequest{Lo: "b"}, "b c d e", 2},
		{DocsRequest{Lo: "b", LoExclusive: true}, "c d e", 3},
		{DocsRequest{Lo: "b", Hi: "d", HasHi: true}, "b c d", 2},
		{DocsRequest{Lo: "b", Hi: "d", HasHi: true, HiExclusive: true}, "b c", 2},
		{DocsRequest{Lo: "b", Hi: "d", HasHi: true, Desc: true}, "d c b", 1},
		{DocsRequest{Lo: "b", LoExclusive: true, Hi: "d", HasHi: true, Desc: true}, "d c", 1},
		{DocsRequest{Hi: "d", HasHi: true, HiExclusive: true, Desc: true}, "c b a _design/x", 2},
		{DocsRequest{Lo: "d", Hi: "b", HasHi: true}, "", 4},
		{DocsRequest{Lo: "c", LoExclusive: true, Hi: "c", HasHi: true, HiExclusive: true}, "", 4},
		{DocsRequest{HasHi: true}, "", 0},
		{DocsRequest{Lo: "_design/", Hi: "_design0", HasHi: true, HiExclusive: true}, "_design/x", 0},
		{DocsRequest{Lo: "zzz"}, "", 6},
	} {
		c.req.Copy = copyName
		if got := ids(n.rows(c.req)); got != c.want {
			t.Errorf("%+v: got %q", c.req, got)
		}
		s, err := n.AllDocs(context.Background(), c.req)
		if err != nil {
			t.Fatal(err)
		}
		if s.Before != c.before || s.Total != 6 || s.Seq != 7 || s.UUID != n.info().UUID {
			t.Errorf("%+v: before %d, total %d, sequence %d", c.req, s.Before, s.Total, s.Seq)
		}
		s.Close()
	}
}

func TestAllDocsWithDocuments(t *testing.T) {
	n := start(t, Options{})
	big := string(body(5000))
	n.replicate("a", "2-a x", `{"v":1}`)
	n.replicate("a", "2-b x", big)
	n.replicate("a", "3-c b x!", `{}`)
	n.replicate("b", "1-b", big)
	n.replicate("c", "1-c!", `{}`)
	rows := n.rows(DocsRequest{IncludeDocs: true, Conflicts: true})
	if len(rows) != 2 || string(rows[0].Doc.Body) != `{"v":1}` || rows[0].Doc.ID != "a" || string(rows[1].Doc.Body) != big {
		t.Fatalf("%+v", rows)
	}
	n.replicate("a", "2-d x", big)
	rows = n.rows(DocsRequest{IncludeDocs: true, Conflicts: true})
	if string(rows[0].Doc.Body) != big || len(rows[0].Doc.Conflicts) != 1 || rows[0].Doc.Conflicts[0] != rev(t, "2-a") {
		t.Fatalf("%+v", rows[0].Doc)
	}
	got, err := n.DocsByID(context.Background(), copyName, []string{"c", "x", "a", "a"}, ByIDOptions{IncludeDocs: true, Conflicts: true})
	if err != nil {
		t.Fatal(err)
	}
	if !got[0].Deleted || got[0].Doc != nil || got[0].Rev != rev(t, "1-c") || !got[1].Missing ||
		got[2].Doc == nil || len(got[3].Doc.Conflicts) != 1 {
		t.Fatalf("%+v", got)
	}
}

// Documents of ids are read until they have the bytes that are asked for, one at least.
func TestDocsByIDWithinBytes(t *testing.T) {
	n := start(t, Options{})
	large := string(body(5000))
	ids := []string{"none", "a", "b", "gone", "c", "a"}
	for _, id := range []string{"a", "b", "c"} {
		n.replicate(id, "1-a", large)
	}
	n.replicate("gone", "1-a!", `{}`)
	for _, tc := range []struct{ maxBytes, want int }{{0, 6}, {1, 2}, {5000, 2}, {6000, 3}, {11_000, 5}, {100_000, 6}} {
		got, err := n.DocsByID(context.Background(), copyName, ids, ByIDOptions{IncludeDocs: true, MaxBytes: tc.maxBytes})
		if err != nil || len(got) != tc.want || got[len(got)-1].ID != ids[tc.want-1] {
			t.Errorf("%d bytes: %d rows, want %d; %v", tc.maxBytes, len(got), tc.want, err)
		}
	}
}

// A listing is of one snapshot, in batches, however many rows there are.
func TestAllDocsInBatches(t *testing.T) {
	n := start(t, Options{})
	const docs = 2*batchRows + 100
	edits := make([]Edit, docs)
	for i := range edits {
		edits[i] = Edit{ID: fmt.Sprintf("%06d", i), Body: []byte(fmt.Sprintf(`{"i":%d}`, i))}
	}
	n.edits(true, edits...)
	s, err := n.AllDocs(context.Background(), DocsRequest{Copy: copyName, IncludeDocs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n.must(n.edit("000000a", "", "{}"))
	var b RowBatch
	seen := 0
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Rows {
			if want := fmt.Sprintf(`%06d{"i":%d}`, seen, seen); r.ID+string(r.Doc.Body) != want {
				t.Fatalf("row %d is %s %s", seen, r.ID, r.Doc.Body)
			}
			seen++
		}
	}
	if seen != docs {
		t.Fatalf("%d rows", seen)
	}
	// The hint is taken: no more rows are read than wanted.
	s, err = n.AllDocs(context.Background(), DocsRequest{Copy: copyName, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if more, err := s.Next(&b); err != nil || !more || len(b.Rows) != 20 {
		t.Fatalf("%v %v %d rows", more, err, len(b.Rows))
	}
	// A stream ends with its request.
	ctx, cancel := context.WithCancel(context.Background())
	s, err = n.AllDocs(ctx, DocsRequest{Copy: copyName})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cancel()
	if _, err := s.Next(&b); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// asked counts how often the code under test asks whether the request is still
// there.
type asked struct {
	context.Context
	times int
}

func (a *asked) Err() error {
	a.times++
	return a.Context.Err()
}

// A listing finds a live document among deleted ones without reading them all: it
// asks for its request once per batchRows of those that it reads.
func TestAllDocsAmongDeleted(t *testing.T) {
	n := start(t, Options{})
	const docs = 12 * batchRows
	edits := make([]Edit, docs)
	for i := range edits {
		way := "1-a!"
		if i == docs/2 {
			way = "1-a"
		}
		edits[i] = replicated(t, fmt.Sprintf("%06d", i), way, "{}")
	}
	for some := range slices.Chunk(edits, 1000) {
		n.edits(false, some...)
	}
	for _, desc := range []bool{false, true} {
		for _, include := range []bool{false, true} {
			ctx := &asked{Context: context.Background()}
			s, err := n.AllDocs(ctx, DocsRequest{Copy: copyName, Limit: 1, Desc: desc, IncludeDocs: include})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx.times = 0
			var b RowBatch
			var rows []Row
			for more := true; more; rows = append(rows, b.Rows...) {
				if more, err = s.Next(&b); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := ids(rows), fmt.Sprintf("%06d", docs/2); got != want {
				t.Errorf("descending %v, documents %v: rows %s, want %s", desc, include, got, want)
			}
			if ctx.times > 6 {
				t.Errorf("descending %v, documents %v: asked %d times", desc, include, ctx.times)
			}
		}
	}
}

// Golden changes/01 and changes/02.
func TestChanges(t *testing.T) {
	n := start(t, Options{})
	a := n.must(n.edit("a", "", `{"n":1}`))
	n.must(n.edit("b", "", `{"n":2}`))
	n.replicate("c", "2-bb 11", `{"from":"bb"}`)
	n.replicate("c", "2-aa 11", `{"from":"aa"}`)
	n.replicate("c", "3-cc c2 11!", `{}`)
	b := n.must(n.remove("b", n.must(n.edit("b", n.showRev1("b"), `{"n":3}`))))
	for _, c := range []struct {
		req  ChangesRequest
		want []string
	}{
		{ChangesRequest{}, []string{"1 a " + a, "5 c 2-bb", "7 b " + b + " deleted"}},
		{ChangesRequest{AllLeaves: true}, []string{"1 a " + a, "5 c 2-bb,2-aa,3-cc", "7 b " + b + " deleted"}},
		{ChangesRequest{Since: 1}, []string{"5 c 2-bb", "7 b " + b + " deleted"}},
		{ChangesRequest{Since: 7}, nil},
		{ChangesRequest{Since: 70}, nil},
		{ChangesRequest{Desc: true}, []string{"7 b " + b + " deleted", "5 c 2-bb", "1 a " + a}},
	} {
		if got := n.feed(c.req); !equal(got, c.want...) {
			t.Errorf("%+v: %v", c.req, got)
		}
	}
	rows := n.changes(ChangesRequest{IncludeDocs: true, Conflicts: true})
	if string(rows[0].Doc.Body) != `{"n":1}` || !slices.Equal(rows[1].Doc.Conflicts, []doc.Rev{rev(t, "2-aa")}) || !rows[2].Doc.Deleted {
		t.Fatalf("%+v", rows)
	}
	for _, c := range []struct {
		desc        bool
		after, want uint64
	}{{false, 0, 3}, {false, 1, 2}, {false, 4, 2}, {false, 7, 0}, {true, 7, 2}, {true, 5, 1}, {true, 1, 0}} {
		s, err := n.Changes(context.Background(), ChangesRequest{Copy: copyName, Desc: c.desc})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Pending(c.after); err != nil || got != c.want {
			t.Errorf("pending after %d (descending %v): %d %v", c.after, c.desc, got, err)
		}
		s.Close()
	}
}

func (n *node) showRev1(id string) string {
	d, err := n.get(OpenRequest{ID: id})
	if err != nil {
		n.t.Fatal(err)
	}
	return d.Rev.String()
}

// compileContains makes a filter of documents that hold a text.
func compileContains(selector []byte) (BatchMatcher, error) {
	if len(selector) == 0 {
		return nil, fault.New(fault.BadRequest, "Selector error: expected a JSON object")
	}
	return eachOf(func(text []byte) bool { return bytes.Contains(text, selector) }), nil
}

// Golden changes/03.
func TestFilters(t *testing.T) {
	n := start(t, Options{CompileSelector: compileContains})
	n.must(n.edit("_design/d", "", `{"views":{}}`))
	for _, id := range []string{"a", "b", "c"} {
		n.must(n.edit(id, "", `{"t":"`+id+`"}`))
	}
	n.replicate("d", "1-x", `{"t":"a"}`)
	n.replicate("d", "1-y", `{"t":"b"}`)
	n.must(n.remove("c", n.showRev1("c")))
	for i := range 30 { // so that looking up is cheaper than searching
		n.must(n.edit(fmt.Sprintf("more%d", i), "", "{}"))
	}
	short := func(req ChangesRequest) string {
		var out []string
		for _, line := range n.feed(req) {
			words := strings.Fields(line)
			out = append(out, words[1])
		}
		return strings.Join(out, " ")
	}
	docIDs := func(ids ...string) Filter { return Filter{Kind: FilterDocIDs, IDs: ids} }
	many := make([]string, directIDs+1)
	for i := range many {
		many[i] = fmt.Sprintf("nope%d", i)
	}
	for _, c := range []struct {
		req  ChangesRequest
		want string
	}{
		{ChangesRequest{Filter: docIDs("c", "a", "nope")}, "a c"},
		{ChangesRequest{Filter: docIDs("c", "a", "nope"), Desc: true}, "c a"},
		{ChangesRequest{Filter: docIDs("c", "a"), Since: 5}, "c"},
		{ChangesRequest{Filter: docIDs()}, ""},
		{ChangesRequest{Filter: docIDs(append(many, "b", "a")...)}, "a b"},
		{ChangesRequest{Filter: docIDs("more29", "a", "b", "c"), Since: 35}, "more29"},
		{ChangesRequest{Filter: Filter{Kind: FilterDesign}}, "_design/d"},
		{ChangesRequest{Filter: Filter{Kind: FilterDesign}, Since: 1}, ""},
		{ChangesRequest{Filter: Filter{Kind: FilterSelector, Selector: []byte(`"t":"a"`)}}, "a"},
		{ChangesRequest{Filter: Filter{Kind: FilterSelector, Selector: []byte(`"t":"a"`)}, AllLeaves: true}, "a d"},
		{ChangesRequest{Filter: Filter{Kind: FilterSelector, Selector: []byte(`"_deleted":true`)}}, "c"},
		{ChangesRequest{Filter: Filter{Kind: FilterSelector, Selector: []byte(`"_id":"_design/d"`)}}, "_design/d"},
	} {
		if got := short(c.req); got != c.want {
			t.Errorf("%+v: %s", c.req.Filter.Kind, got)
		}
	}
	got := n.feed(ChangesRequest{Filter: Filter{Kind: FilterSelector, Selector: []byte(`"t":"a"`)}, AllLeaves: true, Since: 5})
	if !equal(got, "6 d 1-x") {
		t.Errorf("only the leaves that pass are listed: %v", got)
	}
	for _, f := range []Filter{{Kind: FilterSelector}, {Kind: 99}} {
		if _, err := n.Changes(context.Background(), ChangesRequest{Copy: copyName, Filter: f}); !fault.Is(err, fault.BadRequest) {
			t.Errorf("filter %+v: %v", f, err)
		}
	}
}

// Functions are shown documents in batches, with their histories; every leaf that
// would be listed is one of them, and an error ends the feed.
func TestFilterFunctions(t *testing.T) {
	var calls, most int
	failure := fault.New(fault.BadFunction, "thrown")
	n := start(t, Options{CompileFunction: func(_ context.Context, f *Filter) (BatchMatcher, error) {
		if f.Function.Name == "nope" {
			return nil, fault.New(fault.NotFound, "missing json key: nope")
		}
		return func(_ context.Context, docs [][]byte) ([]bool, error) {
			if f.Function.Name == "throws" {
				return nil, failure
			}
			calls, most = calls+1, max(most, len(docs))
			pass := make([]bool, len(docs))
			for i, d := range docs {
				if !bytes.Contains(d, []byte(`"_revisions":{"start":`)) {
					t.Errorf("a document without its history: %s", d)
				}
				pass[i] = bytes.Contains(d, []byte(f.Function.Name))
			}
			return pass, nil
		}, nil
	}})
	edits := make([]Edit, 1000)
	for i := range edits {
		edits[i] = Edit{ID: fmt.Sprintf("d%04d", i), Body: fmt.Appendf(nil, `{"t":"t%d"}`, i%10)}
	}
	n.edits(true, edits...)
	n.replicate("z", "1-x", `{"t":"t3"}`)
	n.replicate("z", "1-y", `{"t":"t4"}`)
	n.replicate("z", "1-z", `{"t":"t3"}`)
	by := func(name string) Filter { return Filter{Kind: FilterFunction, Function: FilterFunc{Name: name}} }
	count := func(req ChangesRequest, want int) {
		t.Helper()
		if got := len(n.changes(req)); got != want {
			t.Errorf("%+v: %d rows, want %d", req, got, want)
		}
	}
	count(ChangesRequest{Filter: by(`"t":"t3"`)}, 101)
	if calls > 40 || most < matchDocs || most > matchDocs+2 {
		t.Errorf("%d calls, up to %d documents", calls, most)
	}
	count(ChangesRequest{Filter: by(`"t":"t3"`), IncludeDocs: true, Limit: 1}, 101)
	count(ChangesRequest{Filter: by(`"t":"t3"`), Desc: true}, 101)
	count(ChangesRequest{Filter: by(`"t":"t4"`), AllLeaves: true}, 101)
	count(ChangesRequest{Filter: by("none"), AllLeaves: true}, 0)
	if got := n.feed(ChangesRequest{Filter: by(`"t":"t3"`), AllLeaves: true, Since: 1001}); !equal(got, "1003 z 1-z,1-x") {
		t.Errorf("the leaves that pass: %v", got)
	}
	// As in CouchDB: the winner has its conflicts, a leaf that is judged alone has none.
	n.replicate("z", "1-w", `{"t":"t5"}`)
	n.replicate("z", "2-v 0!", `{"t":"t5"}`)
	count(ChangesRequest{Filter: by(`"_conflicts":["1-y","1-x","1-w"]}`)}, 1)
	count(ChangesRequest{Filter: by("_conflicts"), AllLeaves: true}, 0)
	count(ChangesRequest{Filter: by("_deleted_conflicts")}, 0)
	if _, err := n.Changes(context.Background(), ChangesRequest{Copy: copyName, Filter: by("nope")}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	s, err := n.Changes(context.Background(), ChangesRequest{Copy: copyName, Filter: by("throws")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(&ChangeBatch{}); !errors.Is(err, failure) {
		t.Error(err)
	}
}

// The node hears of each design document that a copy takes, from any sender, before
// the writer gets its answer; of nothing else.
func TestDesignDocumentsAreTold(t *testing.T) {
	told := 0
	n := start(t, Options{OnDesignDoc: func(name string) {
		if name != copyName {
			t.Errorf("told of %s", name)
		}
		told++
	}})
	rev := ""
	for i, step := range []struct {
		do   func()
		want int
	}{
		{func() { rev = n.must(n.edit("_design/d", "", "{}")) }, 1},
		{func() { n.must(n.edit("a", "", "{}")) }, 0},
		{func() { n.edit("_design/d", "", "{}") }, 0}, // a conflict
		{func() { n.edits(true, Edit{ID: "_local/_design", Body: []byte("{}")}) }, 0},
		{func() { n.edits(true, Edit{ID: "b", Body: []byte("{}")}, Edit{ID: "_design/e", Body: []byte("{}")}) }, 1},
		{func() { n.replicate("_design/d", "5-x", "{}") }, 1},
		{func() { n.replicate("_design/d", "5-x", "{}") }, 0}, // known
		{func() { n.must(n.remove("_design/d", rev)) }, 1},
		{func() { n.replicate("_design/p", "1-p", "{}") }, 1},
		{func() {
			if _, err := n.Purge(context.Background(), copyName, []PurgeItem{{ID: "_design/p", Revs: []doc.Rev{{Pos: 1, ID: "p"}}}}); err != nil {
				t.Error(err)
			}
		}, 1},
	} {
		told = 0
		step.do()
		if told != step.want {
			t.Errorf("step %d: told %d times, want %d", i, told, step.want)
		}
	}
}

// A filter that lets nothing through does not keep Next from returning.
func TestFilterThatRejectsEverything(t *testing.T) {
	n := start(t, Options{CompileSelector: compileContains})
	edits := make([]Edit, scanLimit+10)
	for i := range edits {
		edits[i] = Edit{ID: fmt.Sprint(i), Body: []byte("{}")}
	}
	n.edits(true, edits...)
	s, err := n.Changes(context.Background(), ChangesRequest{
		Copy: copyName, Filter: Filter{Kind: FilterSelector, Selector: []byte("never")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b ChangeBatch
	if more, err := s.Next(&b); err != nil || !more || len(b.Rows) != 0 || b.Upto != scanLimit {
		t.Fatalf("%v %v, %d rows, up to %d", more, err, len(b.Rows), b.Upto)
	}
	if more, err := s.Next(&b); err != nil || more || b.Upto != s.Seq {
		t.Fatalf("%v %v, up to %d of %d", more, err, b.Upto, s.Seq)
	}
}

func TestAppendDoc(t *testing.T) {
	d := &Doc{
		ID: "a\"b", Rev: rev(t, "2-x"), Deleted: true, Body: []byte(`{"v":1}`),
		Atts: []doc.Attachment{{Name: "n", ContentType: "text/plain", RevPos: 1, Length: 3}, {Name: "m"}},
	}
	d.Conflicts, d.DeletedConflicts, d.LocalSeq = []doc.Rev{rev(t, "2-w"), rev(t, "1-v")}, []doc.Rev{rev(t, "3-y")}, 7
	want := `{"_id":"a\"b","_rev":"2-x","v":1,"_deleted":true,"_conflicts":["2-w","1-v"],"_deleted_conflicts":["3-y"],"_local_seq":7,"_attachments":{` +
		`"n":{"content_type":"text/plain","revpos":1,"digest":"md5-AAAAAAAAAAAAAAAAAAAAAA==","length":3,"stub":true},` +
		`"m":{"content_type":"","revpos":0,"digest":"md5-AAAAAAAAAAAAAAAAAAAAAA==","length":0,"stub":true}}}`
	if got := string(AppendDoc(nil, d)); got != want {
		t.Fatalf("got %s", got)
	}
}

// Golden bulk/07.
func TestMissing(t *testing.T) {
	n := start(t, Options{})
	n.replicate("a", "3-3 2 1", "{}")
	n.replicate("a", "2-b 1", "{}")
	n.replicate("b", "1-1", "{}")
	revs := func(texts ...string) []doc.Rev {
		var out []doc.Rev
		for _, s := range texts {
			out = append(out, rev(t, s))
		}
		return out
	}
	got, err := n.Missing(context.Background(), copyName, []IDRevs{
		{"a", revs("3-3", "2-2", "1-1", "2-b")},
		{"a", revs("1-f", "4-4", "9-9", "3-3")},
		{"none", revs("2-2", "1-1")},
		{"b", revs("2-2", "2-2")},
		{"_local/x", revs("0-1")},
		{"b", nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []IDMissing{
		{"a", nil, nil},
		{"a", revs("1-f", "4-4", "9-9"), revs("3-3", "2-b")},
		{"none", revs("2-2", "1-1"), nil},
		{"b", revs("2-2", "2-2"), revs("1-1")},
		{"_local/x", revs("0-1"), nil},
		{"b", nil, nil},
	}
	for i := range want {
		if got[i].ID != want[i].ID || !slices.Equal(got[i].Missing, want[i].Missing) || !slices.Equal(got[i].PossibleAncestors, want[i].PossibleAncestors) {
			t.Errorf("%d: got %+v", i, got[i])
		}
	}
}

// The revision alone comes from another place than the document; both tell the
// same.
func TestOpenRevOnly(t *testing.T) {
	n := start(t, Options{})
	first := n.must(n.edit("a", "", `{"n":1}`))
	n.must(n.edit("a", first, `{"n":2}`))
	n.must(n.edit("large", "", `{"x":"`+strings.Repeat("x", 2*doc.InlineLimit)+`"}`))
	n.must(n.remove("gone", n.must(n.edit("gone", "", `{}`))))
	n.must(n.replicate("branches", "2-b 1-a", `{}`))
	n.must(n.replicate("branches", "2-c 1-a", `{}`))
	for _, id := range []string{"a", "large", "gone", "branches", "none"} {
		for _, deleted := range []bool{false, true} {
			all, allErr := n.get(OpenRequest{ID: id, AllowDeleted: deleted, LocalSeq: true})
			rev, revErr := n.get(OpenRequest{ID: id, AllowDeleted: deleted, LocalSeq: true, RevOnly: true})
			if fault.Reason(allErr) != fault.Reason(revErr) || (allErr == nil) != (revErr == nil) {
				t.Errorf("%s: error %v, with the body %v", id, revErr, allErr)
			}
			if allErr != nil || revErr != nil {
				continue
			}
			if rev.Rev != all.Rev || rev.Deleted != all.Deleted || rev.LocalSeq != all.LocalSeq || rev.Body != nil {
				t.Errorf("%s: %+v, with the body %+v", id, rev, all)
			}
		}
	}
}

// A filter that takes long does not go on for a client that has left.
func TestFilterEndsWithItsRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	asked := 0
	n := start(t, Options{CompileSelector: func([]byte) (BatchMatcher, error) {
		return eachOf(func([]byte) bool { asked++; cancel(); return false }), nil
	}})
	for i := range 500 {
		n.must(n.edit(fmt.Sprint(i), "", "{}"))
	}
	s, err := n.Changes(ctx, ChangesRequest{Copy: copyName, Filter: Filter{Kind: FilterSelector, Selector: []byte("{}")}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(&ChangeBatch{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if asked > 64 {
		t.Errorf("the filter was asked about %d documents", asked)
	}
}

// eachOf makes a filter of what decides about one document.
func eachOf(match func(doc []byte) bool) BatchMatcher {
	return func(_ context.Context, docs [][]byte) ([]bool, error) {
		pass := make([]bool, len(docs))
		for i := range docs {
			pass[i] = match(docs[i])
		}
		return pass, nil
	}
}
