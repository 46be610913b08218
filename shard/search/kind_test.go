package search

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/shard/search/syntax"
)

// fieldsIndexer makes of a document what a test says of its id.
type fieldsIndexer struct {
	indexer
	of map[string][]Field
}

func (x fieldsIndexer) Index(_ context.Context, dst []Field, d *shard.Doc) ([]Field, error) {
	return append(dst, x.of[d.ID]...), nil
}

// with has documents that have some fields.
func (n *world) with(of map[string][]Field) {
	n.t.Helper()
	n.indexes.open = func(context.Context, string, *Definition) (Indexer, error) { return fieldsIndexer{of: of}, nil }
	n.create()
	for id := range of {
		n.put(id, &content{})
	}
}

// expect fails unless a query finds the ids, in their order.
func (n *world) expect(req Request, want string) {
	n.t.Helper()
	if got, _ := n.ids(req); strings.Join(got, " ") != want {
		n.t.Errorf("%s finds %v in place of %s", req.Query, got, want)
	}
}

// TestFields: what becomes of fields by what is said of them.
func TestFields(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.with(map[string][]Field{
		"a": {{Name: "b", Text: "Zebra", Indexed: true}, {Name: "n", Number: 1, IsNumber: true, Indexed: true}},
		"b": {{Name: "b", Text: "zebra", Indexed: true, Boost: 50}, {Name: "n", Number: 1, IsNumber: true, Indexed: true, Facet: true}},
		"c": {{Name: "b", Text: "a zebra crossing", Indexed: true, Boost: 0.5}},
		"d": {{Name: "b", Text: "Zebra", Indexed: true, Exact: true}, {Name: "b", Text: "one two", Indexed: true, Exact: true}},
		"e": {{Name: "b", Text: "zebra", Stored: []byte(`"zebra"`)}, {Name: "s", Text: "zebra", Facet: true}},
		"f": {},
	})
	n.expect(n.request("b:zebra"), "b a c")
	n.expect(n.request("b:Zebr*"), "a b c")
	n.expect(n.request("b:[Z TO a]"), "")
	n.expect(n.request(`b:one\ two`), "")
	n.expect(n.request("*:*"), "a b c d e")
	req := n.request("*:*")
	req.Ranges = []FieldRanges{{"n", []NumberRange{exactly(1)}}}
	req.Counts = []string{"s", "b", "n"}
	a, err := n.indexes.Query(t.Context(), req)
	must(t, err)
	if got := fmt.Sprint(a.Ranges, a.Counts); got != "[[1]] [{true [{zebra 1}]} {false []} {false []}]" {
		t.Errorf("counted %s", got)
	}
	req.Sort = []Sort{{By: ByString, Field: "b", Descending: true}}
	n.expect(req, "a b c d e")
}

// TestDesignDocuments: _search has them, unless the database is partitioned; Mango and
// _nouveau do not.
func TestDesignDocuments(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	field := []Field{{Name: "f", Text: "x", Indexed: true}}
	n.with(map[string][]Field{"_design/d": field, "p:a": field, "p:b": field, "q:a": field})
	n.expect(n.request("f:x"), "_design/d p:a p:b q:a")
	for i, text := range []string{
		`{"type":"search","partitioned":true,"index":""}`, `{"type":"search","index":{}}`, `{"type":"nouveau","index":""}`,
	} {
		req := n.request("f:x")
		dialect := syntax.Search
		if i == 2 {
			dialect = syntax.Nouveau
		}
		req.Signature, req.Definition = signatureOf(dialect, []byte(text)), []byte(text)
		n.expect(req, "p:a p:b q:a")
		if i > 0 {
			req.Query = "_partition:p"
			n.expect(req, "")
			continue
		}
		for q, want := range map[string]string{
			"_partition:p": "p:a p:b", "_partition:q*": "q:a", "_partition:{p TO *]": "q:a", "_partition:/[pq]/": "p:a p:b q:a",
			"_partition:P": "", "f:x -_partition:p": "q:a", "_partition:qq~": "p:a p:b q:a",
		} {
			req.Query = q
			n.expect(req, want)
		}
	}
}
