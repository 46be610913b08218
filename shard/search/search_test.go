package search

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const copyName = "shards/00000000-ffffffff/db.1763600000"

// words splits at blanks and leaves out "the", which leaves a gap.
type words struct{}

func (words) Tokens(dst []Token, text string) []Token {
	for i, w := range strings.Fields(strings.ToLower(text)) {
		if w != "the" {
			dst = append(dst, Token{[]byte(w), i})
		}
	}
	return dst
}

func (words) Normalize(text string) string { return strings.ToLower(text) }

// content is a document of tests.
type content struct {
	Text    string
	Tags    []string
	Numbers []float64
}

// indexer makes the fields t, tag and n of such documents.
type indexer struct{}

func (indexer) Index(_ context.Context, dst []Field, d *shard.Doc) ([]Field, error) {
	var c content
	if err := json.Unmarshal(d.Body, &c); err != nil {
		return dst, err
	}
	dst = append(dst, Field{Name: "t", Text: c.Text, Indexed: true, Stored: []byte(c.Text)})
	for _, tag := range c.Tags {
		dst = append(dst, Field{Name: "tag", Text: tag, Indexed: true, Facet: true})
	}
	for _, n := range c.Numbers {
		dst = append(dst, Field{Name: "n", Number: n, IsNumber: true, Indexed: true})
	}
	return dst, nil
}

func (indexer) Close() {}

// world is what a node has of one copy.
type world struct {
	t       *testing.T
	engine  *storage.Engine
	shards  *shard.Local
	manager *index.Manager
	indexes *Indexes
	stop    func()
	docs    map[string]content
	edits   int
}

func start(t *testing.T, fs vfs.FS) *world {
	t.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: "data", FS: fs, CacheBytes: 8 << 20, JoinIndex: postings.Join})
	must(t, err)
	n := &world{t: t, engine: e, docs: map[string]content{}}
	n.shards = shard.New(shard.Options{Engine: e, OnDrop: func(name string) { n.manager.CopyDropped(name) }})
	n.manager = index.New(index.Options{Engine: e, Shards: n.shards})
	n.indexes = New(n.manager)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{n.manager.Run, e.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	n.stop = func() {
		cancel()
		running.Wait()
		for _, err := range []error{n.manager.Close(), n.shards.Close(), e.Close()} {
			must(t, err)
		}
	}
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
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
		n.docs[id] = *c
	}
	results, err := n.shards.Update(n.t.Context(), shard.UpdateRequest{Copy: copyName, Trusted: true, Edits: []shard.Edit{e}})
	must(n.t, err)
	must(n.t, results[0].Err)
}

func (n *world) request(q syntax.Query) Request {
	return Request{Copy: copyName, Query: q, Limit: 1000, Definition: &Definition{
		Signature: "0123456789abcdef0123456789abcdef", Indexer: indexer{}, Analyzer: func(string) Analyzer { return words{} },
	}}
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
	}
}

// drawQuery makes a query of some depth.
func drawQuery(r *rapid.T, depth int) syntax.Query {
	field := rapid.SampledFrom([]string{"t", "t", "tag", "none"}).Draw(r, "field")
	word := rapid.SampledFrom(vocabulary[:])
	number := rapid.SampledFrom([]float64{-2, 0, 1, 1.5, 3})
	kinds := 9
	if depth > 0 {
		kinds = 12
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
		return syntax.Wildcard{Field: field, Pattern: rapid.SampledFrom([]string{"a*b", "a?", "a*", "?b?", "ü*", `a\*`, "b*b*", "a**"}).Draw(r, "pattern")}
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
		must(t, n.shards.Copies.Create(t.Context(), copyName, shard.CreateOptions{}))
		for range rapid.IntRange(1, 4).Draw(r, "rounds") {
			for range rapid.IntRange(0, 15).Draw(r, "edits") {
				id := fmt.Sprint("d", rapid.IntRange(0, 20).Draw(r, "id"))
				if rapid.IntRange(0, 4).Draw(r, "delete") == 0 {
					n.put(id, nil)
				} else {
					n.put(id, drawContent(r))
				}
			}
			for range 4 {
				q := drawQuery(r, 2)
				req := n.request(q)
				ids, total := n.ids(req)
				var want []string
				for id, c := range n.docs {
					if found, gone := matches(&c, q); found && !gone {
						want = append(want, id)
					}
				}
				slices.Sort(want)
				if got := slices.Sorted(slices.Values(ids)); !slices.Equal(got, want) || total != uint64(len(want)) {
					r.Fatalf("%s finds %v (%d) in place of %v of %v", q, got, total, want, n.docs)
				}
				checkOrder(r, n, req)
			}
			switch rapid.IntRange(0, 3).Draw(r, "then") {
			case 0:
				docs, edits := n.docs, n.edits
				n.stop()
				n = start(t, fs)
				n.docs, n.edits = docs, edits
			case 1:
				s, err := n.engine.Acquire(copyName)
				must(t, err)
				x, err := n.engine.AcquireIndex(s, n.request(nil).Definition.name().String())
				must(t, err)
				must(t, x.Compact(t.Context()))
				n.engine.ReleaseIndex(x)
				n.engine.Release(s)
			}
		}
	})
}

// checkOrder reads all hits in some order, at once and page by page.
func checkOrder(r *rapid.T, n *world, req Request) {
	switch rapid.IntRange(0, 3).Draw(r, "order") {
	case 0:
		req.Sort = []Sort{{By: ByID, Descending: true}}
	case 1:
		req.Sort = []Sort{{By: ByString, Field: "tag", Descending: rapid.Bool().Draw(r, "descending")}, {By: ByNumber, Field: "n"}}
	case 2:
		req.Sort = []Sort{{By: ByNumber, Field: "n", Descending: true}, {By: ByScore}}
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
		for _, h := range a.Hits {
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

// compare is the order of tests, of documents.
func (n *world) compare(req *Request, a, b string) int {
	x, y := n.docs[a], n.docs[b]
	for _, s := range req.Sort {
		order := 0
		switch s.By {
		case ByID:
			order = strings.Compare(a, b)
		case ByString:
			order = strings.Compare(greatest(x.Tags), greatest(y.Tags))
		case ByNumber:
			order = int(2*greatestNumber(x.Numbers) - 2*greatestNumber(y.Numbers))
		default:
		}
		if s.Descending {
			order = -order
		}
		if order != 0 {
			return order
		}
	}
	return strings.Compare(a, b)
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

// matches looks at one document; gone says that analysis leaves nothing of the query.
func matches(c *content, q syntax.Query) (found, gone bool) {
	switch q := q.(type) {
	case syntax.All:
		return true, false
	case syntax.Boosted:
		return matches(c, q.Query)
	case *syntax.Boolean:
		return matchesBoolean(c, q)
	case syntax.Number:
		return slices.Contains(c.Numbers, q.Value), false
	case syntax.NumberRange:
		return slices.ContainsFunc(c.Numbers, func(n float64) bool {
			return (n > q.Lower || q.IncludesLower && n == q.Lower) && (n < q.Upper || q.IncludesUpper && n == q.Upper)
		}), false
	case syntax.Phrase:
		tokens := words{}.Tokens(nil, q.Text)
		return len(tokens) > 0 && matchesPhrase(c.tokens(q.Field), tokens, q.Slop, nil), len(tokens) == 0
	case syntax.Term:
		tokens := words{}.Tokens(nil, q.Text)
		return slices.ContainsFunc(tokens, func(t Token) bool {
			return c.any(q.Field, func(term string) bool { return term == string(t.Term) })
		}), len(tokens) == 0
	case syntax.Prefix:
		return c.any(q.Field, func(term string) bool { return strings.HasPrefix(term, q.Text) }), false
	case syntax.Wildcard:
		return c.any(q.Field, func(term string) bool { return matchesWildcard([]rune(term), []rune(q.Pattern)) }), false
	case syntax.Fuzzy:
		return c.any(q.Field, func(term string) bool { return editsOf([]rune(term), []rune(q.Text)) <= q.Edits }), false
	case syntax.Range:
		return c.any(q.Field, func(term string) bool {
			return (q.Lower.Open || term > q.Lower.Text || q.Lower.Inclusive && term == q.Lower.Text) &&
				(q.Upper.Open || term < q.Upper.Text || q.Upper.Inclusive && term == q.Upper.Text)
		}), false
	}
	return false, false
}

func matchesBoolean(c *content, q *syntax.Boolean) (found, gone bool) {
	left, must, should, one := 0, true, 0, false
	isGone := func(i int) bool { _, gone := matches(c, q.Clauses[i].Query); return gone }
	for i, occur := range q.Occurs(syntax.Search, isGone) {
		match, gone := matches(c, q.Clauses[i].Query)
		if gone {
			continue
		}
		left++
		switch occur {
		case syntax.Must:
			one, must = true, must && match
		case syntax.MustNot:
			must = must && !match
		default:
			if match {
				should++
			}
		}
	}
	return must && (one || should > 0), left == 0
}

// tokens are those of a field.
func (c *content) tokens(field string) (out []Token) {
	switch field {
	case "t":
		return words{}.Tokens(nil, c.Text)
	case "tag":
		base := 0
		for _, tag := range c.Tags {
			for _, t := range (words{}).Tokens(nil, tag) {
				out = append(out, Token{t.Term, base})
				base++
			}
		}
	}
	return out
}

func (c *content) any(field string, f func(string) bool) bool {
	return slices.ContainsFunc(c.tokens(field), func(t Token) bool { return f(string(t.Term)) })
}

// matchesPhrase tries all occurrences for each word of a phrase.
func matchesPhrase(in, phrase []Token, slop int, chosen map[int]int) bool {
	at := len(chosen)
	if at == len(phrase) {
		shifts := slices.Collect(maps.Values(chosen))
		return slices.Max(shifts)-slices.Min(shifts) <= slop
	}
	for _, t := range in {
		if _, used := chosen[t.Position]; used || string(t.Term) != string(phrase[at].Term) {
			continue
		}
		with := map[int]int{t.Position: t.Position - phrase[at].Position}
		maps.Copy(with, chosen)
		if matchesPhrase(in, phrase, slop, with) {
			return true
		}
	}
	return false
}

func matchesWildcard(term, pattern []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(term) == 0
	case pattern[0] == '*':
		return matchesWildcard(term, pattern[1:]) || len(term) > 0 && matchesWildcard(term[1:], pattern)
	case len(term) == 0:
		return false
	case pattern[0] == '\\':
		return term[0] == pattern[1] && matchesWildcard(term[1:], pattern[2:])
	}
	return (pattern[0] == '?' || pattern[0] == term[0]) && matchesWildcard(term[1:], pattern[1:])
}

func editsOf(a, b []rune) int {
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	i, j := len(a)-1, len(b)-1
	best := min(editsOf(a[:i], b)+1, editsOf(a, b[:j])+1)
	if a[i] == b[j] {
		return min(best, editsOf(a[:i], b[:j]))
	}
	best = min(best, editsOf(a[:i], b[:j])+1)
	if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
		best = min(best, editsOf(a[:i-1], b[:j-1])+1)
	}
	return best
}
