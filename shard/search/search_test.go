package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/search/analysis"
	"divan/shard/search/postings"
	"divan/shard/search/searchtest"
	"divan/shard/search/syntax"
	"divan/storage"
	"divan/storage/doc"
	"divan/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const copyName = "shards/00000000-ffffffff/db.1763600000"

// content is a document of tests.
type content struct {
	Text    string
	Tags    []string
	Numbers []float64
	Place   []float64 // longitude and latitude, or only that, or nothing
	id      string
}

// indexer makes the fields t, tag and n of such documents.
type indexer struct{ nouveau bool }

func (x indexer) Index(_ context.Context, dst []Field, d *shard.Doc) ([]Field, error) {
	var c content
	if err := json.Unmarshal(d.Body, &c); err != nil {
		return dst, err
	}
	dst = append(dst, Field{Name: "t", Text: c.Text, Indexed: true, Stored: []byte(c.Text)})
	for _, tag := range c.Tags {
		dst = append(dst, Field{Name: "tag", Text: tag, Indexed: true, Facet: true})
	}
	for _, n := range c.Numbers {
		dst = append(dst, Field{Name: "n", Number: n, IsNumber: true, Indexed: true, Facet: true})
	}
	for i, v := range c.Place {
		dst = append(dst, Field{Name: []string{"lon", "lat"}[i], Number: v, IsNumber: true, Indexed: true})
	}
	if x.nouveau {
		types := map[string]postings.FieldType{"t": postings.TextType, "tag": postings.StringType, "n": postings.DoubleType, "lon": postings.DoubleType, "lat": postings.DoubleType}
		for i := range dst {
			dst[i].Type, dst[i].Exact = types[dst[i].Name], dst[i].Name == "tag"
		}
	}
	return dst, nil
}

func (indexer) Close() {}

// world is what a node has of one copy.
type world struct {
	t       testing.TB
	engine  *storage.Engine
	shards  *shard.Local
	manager *index.Manager
	indexes *Indexes
	stop    func()
	docs    map[string]content
	edits   int
}

func start(tb testing.TB, fs vfs.FS) *world {
	tb.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: "data", FS: fs, CacheBytes: 8 << 20, JoinIndex: postings.Join})
	must(tb, err)
	n := &world{t: tb, engine: e, docs: map[string]content{}}
	n.shards = shard.New(shard.Options{Engine: e, OnDrop: func(name string) { n.manager.CopyDropped(name) }})
	n.manager = index.New(index.Options{Engine: e, Shards: n.shards, Logger: storagetest.FailOnPanics(tb)})
	n.indexes = New(n.manager, func(_ context.Context, _ string, d *Definition) (Indexer, error) {
		return indexer{d.Dialect == syntax.Nouveau}, nil
	})
	ctx, cancel := context.WithCancel(tb.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{n.manager.Run, e.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				tb.Error(err)
			}
		})
	}
	n.stop = func() {
		cancel()
		running.Wait()
		for _, err := range []error{n.manager.Close(), n.shards.Close(), e.Close()} {
			must(tb, err)
		}
	}
	return n
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// put writes a document; nil deletes it.
func (n *world) put(id string, c *content) {
	n.t.Helper()
	n.edits++
	e := shard.Edit{ID: id, Body: []byte("{}"), Deleted: c == nil, Path: doc.Path{Start: uint64(n.edits)}}
	for g := n.edits; g > 0; g-- {
		e.Path.IDs = append(e.Path.IDs, fmt.Sprintf("%032x", g))
	}
	delete(n.docs, id)
	if c != nil {
		e.Body, _ = json.Marshal(c) // of texts and numbers
		kept := *c
		kept.id = id
		n.docs[id] = kept
	}
	results, err := n.shards.Decide(n.t.Context(), shard.DecideRequest{Copy: copyName, Edits: []shard.Edit{e}})
	must(n.t, err)
	must(n.t, results[0].Err)
}

// signature and definition are those of the index of tests: "the" leaves a gap.
const (
	definition = `{"type":"search","analyzer":{"name":"standard","stopwords":["the"]},"index":""}`

	nouveauDefinition = `{"type":"nouveau","default_analyzer":"standard","index":""}`
)

var (
	signature        = signatureOf(syntax.Search, []byte(definition))
	nouveauSignature = signatureOf(syntax.Nouveau, []byte(nouveauDefinition))
	indexName        = index.Name{Type: index.Search, Signature: signature}
)

func (n *world) request(q string) Request {
	return Request{Copy: copyName, Signature: signature, Definition: []byte(definition), Query: q, Limit: 1000}
}

// nouveau is request for the index of _nouveau.
func (n *world) nouveau(q string) Request {
	return Request{Copy: copyName, Signature: nouveauSignature, Definition: []byte(nouveauDefinition), Query: q, Limit: 1000}
}

// ids are those of the hits of a query.
func (n *world) ids(req Request) (ids []string, total uint64) {
	n.t.Helper()
	a, err := n.indexes.Query(n.t.Context(), req)
	must(n.t, err)
	for _, h := range a.Hits {
		ids = append(ids, h.ID)
	}
	return ids, a.Total
}

// vocabulary has words of which some are near to others.
var vocabulary = [...]string{"a", "ab", "abc", "acb", "b", "ba", "bab", "cab", "the", "über"}

func drawContent(r *rapid.T) *content {
	word := rapid.SampledFrom(vocabulary[:])
	return &content{
		Text:    strings.Join(rapid.SliceOfN(word, 0, 8).Draw(r, "text"), " "),
		Tags:    rapid.SliceOfN(word, 0, 2).Draw(r, "tags"),
		Numbers: rapid.SliceOfN(rapid.SampledFrom([]float64{-2, 0, 1.5, 3}), 0, 2).Draw(r, "numbers"),
		Place:   rapid.SliceOfN(rapid.SampledFrom([]float64{-179, -10, 0, 10, 89}), 0, 2).Draw(r, "place"),
	}
}

// drawQuery makes a query of some depth.
func drawQuery(r *rapid.T, depth int) syntax.Query {
	field := rapid.SampledFrom([]string{"t", "t", "tag", "none", "_id"}).Draw(r, "field")
	word := rapid.SampledFrom(vocabulary[:])
	if field == idField {
		word = rapid.SampledFrom([]string{"p1", "p1:d2", "p1:d3", "p2:d1", "a", "the"})
	}
	number := rapid.SampledFrom([]float64{-2, 0, 1, 1.5, 3})
	kinds := 10
	if depth > 0 {
		kinds = 13
	}
	switch rapid.IntRange(0, kinds).Draw(r, "kind") {
	case 0:
		return syntax.All{}
	case 1:
		return syntax.Term{Field: field, Text: word.Draw(r, "word") + " " + word.Draw(r, "word")}
	case 2, 3:
		text := strings.Join(rapid.SliceOfN(word, 0, 4).Draw(r, "phrase"), " ")
		return syntax.Phrase{Field: field, Text: text, Slop: rapid.IntRange(0, 3).Draw(r, "slop")}
	case 4:
		return syntax.Prefix{Field: field, Text: word.Draw(r, "word")}
	case 5:
		return syntax.Wildcard{Field: field, Pattern: rapid.SampledFrom([]string{"a*b", "a?", "a*", "b?b", "ü*", `a\*b*`, "b*b*", "a**", "p1*d?", "p?:d2"}).Draw(r, "pattern")}
	case 6:
		return syntax.Fuzzy{Field: field, Text: word.Draw(r, "word"), Edits: rapid.IntRange(0, 2).Draw(r, "edits")}
	case 7:
		bound := func() syntax.Bound {
			if rapid.Bool().Draw(r, "open") {
				return syntax.Bound{Open: true}
			}
			return syntax.Bound{Text: word.Draw(r, "bound"), Inclusive: rapid.Bool().Draw(r, "inclusive")}
		}
		return syntax.Range{Field: field, Lower: bound(), Upper: bound()}
	case 8:
		return syntax.NumberRange{Field: "n", Lower: number.Draw(r, "lower"), Upper: number.Draw(r, "upper"), IncludesLower: rapid.Bool().Draw(r, "from"), IncludesUpper: rapid.Bool().Draw(r, "to")}
	case 9:
		return syntax.Number{Field: "n", Value: number.Draw(r, "number")}
	case 10:
		return syntax.Regexp{Field: field, Pattern: rapid.SampledFrom([]string{"a.*", "[^a].*", "a(b|c)+", "p1.*", "p<0-1>:.{2}", "~(.*b.*)", "@"}).Draw(r, "regexp")}
	case 11:
		return syntax.Boosted{Query: drawQuery(r, 0), Factor: 2.5}
	}
	b := &syntax.Boolean{}
	for i := range rapid.IntRange(1, 4).Draw(r, "clauses") {
		b.Clauses = append(b.Clauses, syntax.Clause{
			And: i > 0 && rapid.Bool().Draw(r, "and"), Modifier: rapid.SampledFrom([]syntax.Modifier{syntax.Plain, syntax.Plain, syntax.Plus, syntax.Negated}).Draw(r, "modifier"),
			Query: drawQuery(r, depth-1),
		})
	}
	return b
}

// TestQueries: queries find what a look at each document finds, with updates, deletions,
// compactions and restarts in between; and pages are what all hits are in order.
func TestQueries(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		fs := vfs.NewMem()
		n := start(t, fs)
		defer func() { n.stop() }()
		chunkBytes := rapid.SampledFrom([]uint64{1, 1000, postings.ChunkBytes}).Draw(r, "chunk")
		n.indexes.chunkBytes = chunkBytes
		must(t, n.shards.Copies.Create(t.Context(), copyName, shard.CreateOptions{}))
		for range rapid.IntRange(1, 4).Draw(r, "rounds") {
			for range rapid.IntRange(0, 15).Draw(r, "edits") {
				i := rapid.IntRange(0, 20).Draw(r, "id")
				id := fmt.Sprintf("p%d:d%d", i%3, i)
				if rapid.IntRange(0, 4).Draw(r, "delete") == 0 {
					n.put(id, nil)
				} else {
					n.put(id, drawContent(r))
				}
			}
			for range 4 {
				text := drawQuery(r, 2).String()
				q, err := syntax.Parse(text, syntax.Search)
				must(t, err)
				req := n.request(text)
				ids, total := n.ids(req)
				want, _ := n.model().Find(q)
				if got := slices.Sorted(slices.Values(ids)); !slices.Equal(got, want) || total != uint64(len(want)) {
					r.Fatalf("%s finds %v (%d) in place of %v of %v", q, got, total, want, n.docs)
				}
				checkOrder(r, n, req)
				checkParts(r, n, req, want)
			}
			switch rapid.IntRange(0, 3).Draw(r, "then") {
			case 0:
				docs, edits := n.docs, n.edits
				n.stop()
				n = start(t, fs)
				n.docs, n.edits = docs, edits
				n.indexes.chunkBytes = chunkBytes
			case 1:
				s, err := n.engine.Acquire(copyName)
				must(t, err)
				x, err := n.engine.Indexes().Acquire(s, indexName.String())
				must(t, err)
				must(t, x.Compact(t.Context()))
				n.engine.Indexes().Release(x)
				n.engine.Release(s)
			}
		}
	})
}

// checkOrder reads all hits in some order, at once and page by page.
func checkOrder(r *rapid.T, n *world, req Request) {
	switch rapid.IntRange(0, 4).Draw(r, "order") {
	case 0:
		req.Sort = []Sort{{By: ByID, Descending: true}}
	case 1:
		req.Sort = []Sort{{By: ByString, Field: "tag", Descending: rapid.Bool().Draw(r, "descending")}, {By: ByNumber, Field: "n"}}
	case 2:
		req.Sort = []Sort{{By: ByNumber, Field: "n", Descending: true}, {By: ByScore}}
	case 3:
		req.Sort = []Sort{{By: ByDistance, Field: "lon", LatitudeField: "lat", Longitude: 20, Latitude: -30, Descending: rapid.Bool().Draw(r, "descending")}}
	}
	all, total := n.ids(req)
	if less := func(a, b string) int { return n.compare(&req, a, b) }; req.Sort != nil && req.Sort[len(req.Sort)-1].By != ByScore && !slices.IsSortedFunc(all, less) {
		r.Fatalf("%v in the order of %v", all, req.Sort)
	}
	var pages []string
	for req.Limit = 3; ; {
		a, err := n.indexes.Query(n.t.Context(), req)
		if err != nil || a.Total != total {
			r.Fatalf("a page of %d in place of %d, %v", a.Total, total, err)
		}
		for i := range a.Hits {
			h, before := &a.Hits[i], req.After
			if i > 0 {
				before = &a.Hits[i-1].Position
			}
			if before != nil && Compare(req.Sort, before, &h.Position) >= 0 {
				r.Fatalf("%v does not come before %v", before, h.Position)
			}
			pages = append(pages, h.ID)
			if len(h.Fields) != 1 || string(h.Fields[0].Value) != n.docs[h.ID].Text {
				r.Fatalf("%s has %v", h.ID, h.Fields)
			}
		}
		if len(a.Hits) == 0 {
			break
		}
		req.After = &a.Hits[len(a.Hits)-1].Position
	}
	if !slices.Equal(pages, all) {
		r.Fatalf("pages %v of %v", pages, all)
	}
}

// model is another engine with the same documents.
func (n *world) model() *searchtest.Index {
	n.t.Helper()
	fields, err := analysis.SearchFields([]byte(`{"name":"standard","stopwords":["the"]}`))
	must(n.t, err)
	// The patterns of tests mean the same in Go, but for these.
	out := searchtest.New(searchtest.Options{Analyzers: fields, Regexps: strings.NewReplacer("<0-1>", "[01]", "~(.*b.*)", "[^b]*", "@", ".*")})
	for id, c := range n.docs {
		values := []searchtest.Value{{Field: "t", Text: c.Text}}
		for _, tag := range c.Tags {
			values = append(values, searchtest.Value{Field: "tag", Text: tag})
		}
		for _, v := range c.Numbers {
			values = append(values, searchtest.Value{Field: "n", Number: v, IsNumber: true})
		}
		out.Put(id, values)
	}
	return out
}

// compare is the order of tests, of documents.
func (n *world) compare(req *Request, a, b string) int {
	x, y := n.docs[a], n.docs[b]
	return cmp.Or(compareContents(req.Sort, &x, &y), strings.Compare(a, b))
}

// compareContents leaves the ids out.
func compareContents(sort []Sort, x, y *content) int {
	for _, s := range sort {
		order := 0
		switch s.By {
		case ByID:
			order = strings.Compare(x.id, y.id)
		case ByString:
			order = strings.Compare(greatest(x.Tags), greatest(y.Tags))
		case ByNumber:
			order = cmp.Compare(greatestNumber(x.Numbers), greatestNumber(y.Numbers))
		case ByDistance:
			order = cmp.Compare(x.distance(&s), y.distance(&s))
		default:
		}
		if s.Descending {
			order = -order
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

func greatest(tags []string) (out string) {
	for _, tag := range tags {
		if tag != "the" {
			out = max(out, tag)
		}
	}
	return out
}

func greatestNumber(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	return slices.Max(list)
}
