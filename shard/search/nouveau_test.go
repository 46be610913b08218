package search

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/shard/search/postings"
	"divan/storage/fault"
)

// TestNouveauOrder: fields are ordered by what they are, and those without a value of words
// come first.
func TestNouveauOrder(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.put("a", &content{Text: "x", Tags: []string{"pear"}, Numbers: []float64{3}})
	n.put("b", &content{Text: "x", Tags: []string{"Apple"}, Numbers: []float64{-2.5}})
	n.put("c", &content{Text: "x", Numbers: []float64{1, 2}})
	n.put("d", &content{Text: "x", Tags: []string{"fig"}})
	for _, c := range []struct {
		sort []Sort
		want string
		kind SortBy
	}{
		{[]Sort{{By: ByField, Field: "tag"}}, "c b d a", ByString},
		{[]Sort{{By: ByField, Field: "tag", Descending: true}}, "a d b c", ByString},
		{[]Sort{{By: ByField, Field: "n"}}, "b d c a", ByNumber},
		{[]Sort{{By: ByField, Field: "nosuch", Descending: true}, {By: ByID, Descending: true}}, "d c b a", ByField},
		{[]Sort{{By: ByField, Field: "_id", Descending: true}}, "d c b a", ByString},
	} {
		req := n.nouveau("*:*")
		req.Sort = c.sort
		ids := pages(t, n, req, c.kind)
		if want := fmt.Sprintf("[%s]", c.want); fmt.Sprint(ids) != want {
			t.Errorf("%v: %v in place of %s", c.sort, ids, want)
		}
	}
	for _, field := range []string{"t"} {
		req := n.nouveau("*:*")
		req.Sort = []Sort{{By: ByField, Field: field}}
		if _, err := n.indexes.Query(t.Context(), req); fault.Reason(err) != "can't sort on field "+field {
			t.Errorf("a sort by %s: %v", field, err)
		}
	}
}

// pages reads hits one by one, and checks what is said of the first part of the order.
func pages(t *testing.T, n *world, req Request, kind SortBy) (ids []string) {
	t.Helper()
	for req.Limit = 1; ; {
		a, err := n.indexes.Query(t.Context(), req)
		must(t, err)
		if len(a.Hits) == 0 {
			return ids
		}
		if a.Hits[0].Order[0].Kind != kind {
			t.Errorf("%v of %v", a.Hits[0].Order, req.Sort)
		}
		ids = append(ids, a.Hits[0].ID)
		req.After = &a.Hits[0].Position
	}
}

// TestNouveauFacets: strings are counted, numbers by ranges, and neither the other way round.
func TestNouveauFacets(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.put("a", &content{Tags: []string{"x", "x", "Y"}, Numbers: []float64{3, 4}})
	n.put("b", &content{Tags: []string{"x"}, Numbers: []float64{5}})
	req := n.nouveau("*:*")
	req.Counts = []string{"tag", "nosuch"}
	req.Ranges = []FieldRanges{{"n", []NumberRange{{"", 3, 4, true, true}, {"", 4, 9, false, true}}}, {"nosuch", []NumberRange{exactly(1)}}}
	a, err := n.indexes.Query(t.Context(), req)
	must(t, err)
	if got := fmt.Sprint(a.Counts, a.Ranges); got != "[{true [{Y 1} {x 2}]} {false []}] [[1 1] [0]]" {
		t.Errorf("counted %s", got)
	}
	for _, change := range []func(*Request){
		func(r *Request) { r.Counts = []string{"n"} },
		func(r *Request) { r.Counts = []string{"t"} },
		func(r *Request) { r.Ranges = []FieldRanges{{Field: "tag"}} },
	} {
		req := n.nouveau("*:*")
		change(&req)
		if _, err := n.indexes.Query(t.Context(), req); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%v, %v: %v", req.Counts, req.Ranges, err)
		}
	}
}

// TestNouveauScores: the order by BM25.
func TestNouveauScores(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	for id, text := range map[string]string{
		"a": "apple", "c": "apple apple apple apple", "d": "apple one two three", "e": "cherry", "f": "nothing",
	} {
		n.put(id, &content{Text: text, Tags: []string{text}})
	}
	for q, want := range map[string]string{
		"t:apple":                       "[c a d]",
		"t:apple AND (t:one t:apple)@1": "[d c a]",
		"t:cherry^100 OR t:nothing^0.1": "[e f]",
		"(t:apple t:one t:two)@2":       "[d]",
		"tag:apple t:apple":             "[a c d]",
		`t:"apple apple" t:one`:         "[c d]",
	} {
		if got, _ := n.ids(n.nouveau(q)); fmt.Sprint(got) != want {
			t.Errorf("%s: %v in place of %s", q, got, want)
		}
	}
}

// typedIndexer makes a number or a text of f, as it is in the document.
type typedIndexer struct{ indexer }

func (typedIndexer) Index(_ context.Context, dst []Field, d *shard.Doc) ([]Field, error) {
	var c content
	if err := json.Unmarshal(d.Body, &c); err != nil {
		return dst, err
	}
	for _, v := range c.Numbers {
		dst = append(dst, Field{Name: "f", Number: v, IsNumber: true, Indexed: true, Type: postings.DoubleType})
	}
	for _, v := range c.Tags {
		dst = append(dst, Field{Name: "f", Text: v, Exact: true, Indexed: true, Type: postings.StringType})
	}
	return dst, nil
}

// textIndexer stores texts as JSON.
type textIndexer struct{ indexer }

func storedTexts(context.Context, string, *Definition) (Indexer, error) { return textIndexer{}, nil }

func (textIndexer) Index(_ context.Context, dst []Field, d *shard.Doc) ([]Field, error) {
	var c struct{ Text json.RawMessage }
	if err := json.Unmarshal(d.Body, &c); err != nil {
		return dst, err
	}
	text := ""
	err := json.Unmarshal(c.Text, &text)
	return append(dst, Field{Name: "t", Text: text, Indexed: true, Stored: c.Text}), err
}

// TestWrongType: a field keeps the type that it has; a document that says otherwise stops
// the index until it is changed.
func TestWrongType(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.indexes.open = func(context.Context, string, *Definition) (Indexer, error) { return typedIndexer{}, nil }
	n.create()
	n.put("a", &content{Numbers: []float64{1}})
	n.put("b", &content{Tags: []string{"x"}})
	refused := func(q string) {
		t.Helper()
		_, err := n.indexes.Query(t.Context(), n.nouveau(q))
		if fault.Reason(err) != "field f is of type STRING not DOUBLE" || !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: %v", q, err)
		}
	}
	refused("*:*")
	refused("f:1")
	n.put("b", &content{Numbers: []float64{2}})
	if ids, _ := n.ids(n.nouveau("f:[1 TO 2]")); !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("found %v", ids)
	}
	n.put("c", &content{Numbers: []float64{3}, Tags: []string{"x"}})
	refused("f:3")
	stale := n.nouveau("*:*")
	stale.Stale = true
	if ids, _ := n.ids(stale); !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("found %v", ids)
	}
}

// TestUnknownField: among copies, a document of one where no document has the field is ordered
// as one without the field of another copy.
func TestUnknownField(t *testing.T) {
	hit := func(id string, v Value) *Position { return &Position{[]Value{v}, id} }
	sort := []Sort{{By: ByField, Field: "f"}}
	for _, c := range []struct {
		unknown, other *Position
		want           int
	}{
		{hit("b", Value{Kind: ByField}), hit("a", Value{Kind: ByString, Missing: true}), 1},
		{hit("a", Value{Kind: ByField}), hit("b", Value{Kind: ByString, Missing: true}), -1},
		{hit("b", Value{Kind: ByField}), hit("a", Value{Kind: ByString, Text: ""}), -1},
		{hit("b", Value{Kind: ByField}), hit("a", Value{Kind: ByNumber}), 1},
		{hit("b", Value{Kind: ByField}), hit("a", Value{Kind: ByNumber, Number: 1}), -1},
		{hit("b", Value{Kind: ByField}), hit("a", Value{Kind: ByNumber, Number: -1}), 1},
		{hit("b", Value{Kind: ByField}), hit("a", Value{Kind: ByField}), 1},
	} {
		if got, back := Compare(sort, c.unknown, c.other), Compare(sort, c.other, c.unknown); got != c.want || back != -c.want {
			t.Errorf("%v and %v: %d and %d", c.unknown, c.other, got, back)
		}
	}
}
