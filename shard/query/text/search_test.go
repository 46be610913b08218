package text

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/query"
	"divan/shard/search"
	"divan/shard/search/indexer"
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const copyName = "shards/00000000-ffffffff/db.1763600000"

// node is a copy with documents, and its full-text indexes.
type node struct {
	*search.Indexes
	documents map[string][]byte // as selectors see them
}

func startNode(t *testing.T, bodies []string) *node {
	t.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20, JoinIndex: postings.Join})
	if err != nil {
		t.Fatal(err)
	}
	shards := shard.New(shard.Options{Engine: e})
	manager := index.New(index.Options{Engine: e, Shards: shards})
	t.Cleanup(func() {
		if err := errors.Join(manager.Close(), shards.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := shards.Copies.Create(t.Context(), copyName, shard.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n := &node{search.New(manager, indexer.New(nil)), map[string][]byte{}}
	for i, body := range bodies {
		edit := shard.Edit{ID: fmt.Sprintf("d%03d", i), Body: []byte(body), Path: doc.Path{Start: 1, IDs: []string{fmt.Sprintf("%032x", 1)}}}
		results, err := shards.Decide(t.Context(), shard.DecideRequest{Copy: copyName, Edits: []shard.Edit{edit}})
		if err = errors.Join(err, results[0].Err); err != nil {
			t.Fatal(err)
		}
		n.documents[edit.ID] = shard.AppendDoc(nil, &shard.Doc{ID: edit.ID, Rev: results[0].Rev, Body: edit.Body})
	}
	return n
}

// find returns the ids that a query finds.
func (n *node) find(ctx context.Context, def *search.Definition, q string) (map[string]bool, error) {
	a, err := n.Query(ctx, search.Request{
		Copy: copyName, Signature: def.Signature, Definition: def.Text, Query: q, Limit: 10_000, Sort: []search.Sort{{By: search.ByID}},
	})
	out := map[string]bool{}
	if err == nil {
		for _, h := range a.Hits {
			out[h.ID] = true
		}
	}
	return out, err
}

// Few names and values, so that selectors meet documents. Strings that collation takes for
// equal are not among them.
func keys() []string {
	return []string{"a", "a", "a", "b", "b", "c", "0", "1", "a.b", "[]", "a:string", "é", "x y"}
}

func texts() []string {
	return []string{"", "a", "A", "b", "ab", "aB", "é", "z\n", `q"`, "_", "-", "1", "10", "zz zz", "日本", "*x", "the", "a*b", "\U0010ffff", "AND"}
}

func numbers() []string {
	return []string{"0", "-0.0", "1", "1.0", "2", "-3", "7", "2.5", "1e3", "9007199254740993", "9007199254740992"}
}

// value makes a JSON value by a source of random numbers.
func value(pick func(int) int, depth int) string {
	n := 8
	if depth == 0 {
		n = 5
	}
	switch pick(n) {
	case 0:
		return "null"
	case 1:
		return []string{"true", "false"}[pick(2)]
	case 2:
		return numbers()[pick(len(numbers()))]
	case 3, 4:
		return quotedJSON(texts()[pick(len(texts()))])
	case 5, 6:
		var list []string
		for range pick(4) {
			list = append(list, value(pick, depth-1))
		}
		return "[" + strings.Join(list, ",") + "]"
	default:
		return object(pick, depth-1)
	}
}

func object(pick func(int) int, depth int) string {
	var members []string
	for range pick(4) {
		members = append(members, quotedJSON(keys()[pick(len(keys()))])+":"+value(pick, max(depth, 0)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func quotedJSON(s string) string { return string(doc.AppendString(nil, s)) }

// selector draws the text of a selector.
func selector(pick func(int) int, depth int) string {
	var members []string
	for range 1 + pick(2) {
		members = append(members, condition(pick, depth))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func condition(pick func(int) int, depth int) string {
	fields := []string{"a", "a", "b", "b", "c", "a.b", `a\.b`, "a.0", "a.0.b", "0", "a.b.c", "_id", "é", "a.[]", "a:string", "x y"}
	if depth == 0 {
		return quotedJSON(fields[pick(len(fields))]) + ":{" + operator(pick) + "}"
	}
	switch pick(8) {
	case 0:
		var list []string
		for range pick(4) {
			list = append(list, selector(pick, depth-1))
		}
		return quotedJSON([]string{"$and", "$or", "$nor"}[pick(3)]) + ":[" + strings.Join(list, ",") + "]"
	case 1:
		return `"$not":` + selector(pick, depth-1)
	case 2:
		inner := selector(pick, depth-1)
		if pick(2) == 0 {
			inner = "{" + operator(pick) + "}"
		}
		return quotedJSON(fields[pick(len(fields))]) + `:{"` + []string{"$elemMatch", "$allMatch", "$keyMapMatch"}[pick(3)] + `":` + inner + "}"
	case 3:
		return quotedJSON(fields[pick(len(fields))]) + `:{"$not":{` + operator(pick) + "}}"
	case 4:
		return quotedJSON(fields[pick(len(fields))]) + ":" + value(pick, 2)
	default:
		return quotedJSON(fields[pick(len(fields))]) + ":{" + operator(pick) + "}"
	}
}

func operator(pick func(int) int) string {
	names := []string{"$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$in", "$nin", "$all", "$exists", "$type", "$size", "$mod", "$regex", "$beginsWith"}
	name := names[pick(len(names))]
	arg := value(pick, 2)
	switch name {
	case "$in", "$nin", "$all":
		var list []string
		for range pick(4) {
			list = append(list, value(pick, 2))
		}
		arg = "[" + strings.Join(list, ",") + "]"
	case "$exists":
		arg = []string{"true", "false"}[pick(2)]
	case "$type":
		arg = quotedJSON([]string{"null", "boolean", "number", "string", "array", "object", "other"}[pick(7)])
	case "$size":
		arg = fmt.Sprint(pick(3))
	case "$mod":
		arg = []string{"[2,0]", "[5,1]", "[-3,-1]"}[pick(3)]
	case "$regex":
		arg = quotedJSON([]string{"", "a", "^a$", "z$"}[pick(4)])
	case "$beginsWith":
		arg = quotedJSON(texts()[pick(len(texts()))])
	}
	return quotedJSON(name) + ":" + arg
}

// TestFindsAllThatMatch: every document that a selector matches is found by its query, in
// indexes of all fields, of some, and of such as are analyzed.
func TestFindsAllThatMatch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var bodies []string
	for len(bodies) < 400 {
		body, err := doc.Canonical(nil, []byte(object(random.IntN, 4)))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(body))
	}
	n := startNode(t, bodies)
	type tested struct {
		def *search.Definition
		of  Index
	}
	var indexes []tested
	for _, c := range []struct {
		entry string
		of    Index
	}{
		{`{"index":{"default_field":false},"analyzer":"keyword"}`, Index{Exact: true}},
		{
			`{"index":{"default_field":false,"fields":[{"name":"a","type":"string"},{"name":"b","type":"number"},{"name":"a.[]","type":"number"}]},"analyzer":"keyword"}`,
			Index{Exact: true, Fields: map[string]struct{}{"a_3astring": {}, "b_3anumber": {}, "a._5b_5d_3anumber": {}}},
		},
		{`{"index":{"default_field":false,"default_analyzer":"english"},"analyzer":"english"}`, Index{}},
	} {
		def, err := search.Parse([]byte(`{"language":"query","indexes":{"i":`+c.entry+`}}`), syntax.Search, "i", false)
		if err != nil {
			t.Fatal(err)
		}
		indexes = append(indexes, tested{def, c.of})
	}
	matches, narrow := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "pick") }
		text := selector(pick, rapid.IntRange(0, 3).Draw(rt, "depth"))
		sel, err := query.Parse([]byte(text))
		if err != nil {
			rt.Skip(err)
		}
		work := query.NewWork(t.Context(), nil)
		var want []string
		for id, document := range n.documents {
			if ok, err := sel.ByType().Match(work, document); err != nil {
				rt.Skip(err)
			} else if ok && !sel.Nothing() {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		matches += len(want)
		for i, x := range indexes {
			found := map[string]bool{}
			q := Search(sel, x.of)
			if q != nil {
				if found, err = n.find(t.Context(), x.def, q.String()); err != nil {
					rt.Fatalf("%s: %s: %v", text, q, err)
				}
			}
			if len(found) < len(n.documents)/2 {
				narrow++
			}
			for _, id := range want {
				if !found[id] {
					rt.Fatalf("index %d: %s\nnormal %s\nquery  %v\ndoes not find %s", i, text, sel.Append(nil), q, n.documents[id])
				}
			}
		}
	})
	if matches == 0 || narrow == 0 {
		t.Errorf("%d matches, %d queries that find little: the test sees only one side", matches, narrow)
	}
	t.Logf("%d matches, %d queries that find little", matches, narrow)
}
