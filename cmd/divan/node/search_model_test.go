package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"divan/shard/search/analysis"
	"divan/shard/search/searchtest"
	"divan/shard/search/syntax"
)

// searchDocs and searchQueries are how many documents and queries TestSearchAgainstModel
// has; DIVAN_SEARCH_DOCS and DIVAN_SEARCH_QUERIES say other numbers.
const (
	searchDocs    = 300
	searchQueries = 150
)

// searchSeed is what everything is drawn from; DIVAN_SEARCH_SEED says another one.
const searchSeed = 1

func fromEnviron(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSearchAgainstModel asks three nodes random full-text queries of both dialects, at
// first, after updates and deletions, after purges, after a power cut in the middle of a
// build, while all shards are split and after that, and while a node is away. What is
// found, in which order, page by page, and what is counted must be that of a second engine,
// which looks at each document for each query.
func TestSearchAgainstModel(t *testing.T) {
	docs, queries := fromEnviron(t, "DIVAN_SEARCH_DOCS", searchDocs), fromEnviron(t, "DIVAN_SEARCH_QUERIES", searchQueries)
	seed := fromEnviron(t, "DIVAN_SEARCH_SEED", searchSeed)
	inTown(t, func(w *town) {
		m := newSearchModel(w, docs, uint64(seed))
		a, b, c := m.homes[0], m.homes[1], m.homes[2]
		m.create()
		for len(m.docs) < docs {
			m.write(min(1000, docs-len(m.docs)))
		}
		rounds := []struct {
			name   string
			change func()
		}{
			{"at first", func() {}},
			{"after updates and deletions", m.change},
			{"after purges", func() { m.purge(docs/30 + 1) }},
			{"after a power cut", func() { m.cutPower(b) }},
			{"after a split", func() {
				a.split("pond", func() { m.ask("meanwhile", queries/20) })
				if db, _ := a.node.meta.Database("pond"); len(db.Shards) != 4 {
					t.Errorf("%d ranges", len(db.Shards))
				}
			}},
			{"while a node is away", func() {
				c.kill()
				m.homes = []*home{a, b}
				m.change()
			}},
			{"when it is back", func() {
				c.start()
				c.soon("GET", "/_up", "", "200")
				m.homes = []*home{a, b, c}
				m.change()
			}},
		}
		for i, r := range rounds {
			r.change()
			<-time.After(pushed) // by now all copies have what was acknowledged
			m.ask(r.name, queries*(i+1)/len(rounds)-queries*i/len(rounds))
		}
	})
}

// searchModel is a database on the nodes of a town, and what it should hold.
type searchModel struct {
	t     *testing.T
	homes []*home
	rng   *rand.Rand

	vocabulary []string
	rank       *rand.Zipf
	docs       map[string]*searchDoc
	ids        []string // of docs, those that are gone too
	serial     int
	search     *searchtest.Index
	nouveau    *searchtest.Index
}

// searchDoc is a document. One without tags is in no index: the function throws.
type searchDoc struct {
	Text   string   `json:"text"`
	Title  string   `json:"title"`
	Tags   []string `json:"tags,omitzero"`
	Kind   string   `json:"kind"`
	N      []int    `json:"n"`
	Serial int      `json:"serial"`
	rev    string
}

const (
	searchFunction = `function (doc) {
  index("default", doc.text, {store: true});
  doc.tags.forEach(function (tag) { index("tag", tag, {facet: true}); });
  doc.n.forEach(function (n) { index("n", n, {facet: true}); });
  index("title", doc.title);
  index("kind", doc.kind, {facet: true});
  index("serial", doc.serial);
}`
	nouveauFunction = `function (doc) {
  index("text", "default", doc.text, {store: true});
  doc.tags.forEach(function (tag) { index("string", "tag", tag); });
  doc.n.forEach(function (n) { index("double", "n", n); });
  index("text", "title", doc.title);
  index("string", "kind", doc.kind);
  index("double", "serial", doc.serial);
}`
	searchAnalyzers = `{"name":"perfield","default":"standard","fields":{"tag":"keyword","kind":"keyword","title":"english"}}`
)

func newSearchModel(w *town, docs int, seed uint64) *searchModel {
	w.t.Helper()
	for i := range 3 {
		w.build(i+1, seedList, secret0, openToAll, "DIVAN_DREYFUS__MAX_LIMIT=1000000").onDisk()
	}
	a, b, c := w.homes[1], w.homes[2], w.homes[3]
	w.start(a, b, c)
	w.eventually("all vote", func() bool { return a.node != nil && len(a.node.meta.Voters()) == 3 })
	m := &searchModel{t: w.t, homes: []*home{a, b, c}, rng: rand.New(rand.NewPCG(seed, 0)), docs: map[string]*searchDoc{}}
	for _, h := range m.homes {
		h.soon("GET", "/_all_dbs", "", `200 ["_global_changes","_replicator","_users"]`)
	}
	m.vocabulary = drawVocabulary(m.rng, min(20_000, docs+200))
	m.rank = rand.NewZipf(m.rng, 1.1, 4, uint64(len(m.vocabulary)-1))
	ofSearch, err := analysis.SearchFields([]byte(searchAnalyzers))
	if err != nil {
		w.t.Fatal(err)
	}
	ofNouveau, err := analysis.NouveauFields("standard", map[string]string{"tag": "keyword", "kind": "keyword", "title": "english"})
	if err != nil {
		w.t.Fatal(err)
	}
	m.search = searchtest.New(searchtest.Options{Dialect: syntax.Search, Analyzers: ofSearch})
	m.nouveau = searchtest.New(searchtest.Options{Dialect: syntax.Nouveau, Analyzers: ofNouveau, Numeric: []string{"n", "serial"}})
	return m
}

// must asks a node and fails unless the answer has one of the statuses; it returns the body.
func (m *searchModel) must(method, path, body string, statuses ...string) string {
	m.t.Helper()
	h := m.homes[m.rng.IntN(len(m.homes))]
	status, text, _ := strings.Cut(h.ask(method, path, body), " ")
	if !slices.Contains(statuses, status) {
		m.t.Fatalf("%s: %s %s %.2000s: %s %.2000s", h.name, method, path, body, status, text)
	}
	return text
}

// jsonText is a value as JSON.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of texts and numbers
	}
	return string(text)
}

func (m *searchModel) create() {
	m.must("PUT", "/pond?q=2&n=3", "", "201")
	m.must("PUT", "/pond/_design/d", fmt.Sprintf(`{"indexes":{"i":{"analyzer":%s,"index":%s}},"nouveau":{"i":{"field_analyzers":{"tag":"keyword","kind":"keyword","title":"english"},"index":%s}}}`,
		searchAnalyzers, jsonText(searchFunction), jsonText(nouveauFunction)), "201")
}

// write writes new documents.
func (m *searchModel) write(n int) {
	var ids []string
	for range n {
		m.serial++
		ids = append(ids, fmt.Sprintf("d%06d", m.serial))
	}
	m.ids = append(m.ids, ids...)
	m.save(ids, func(id string) *searchDoc { return m.draw(id) })
}

// save writes documents; one that is nil is deleted.
func (m *searchModel) save(ids []string, draw func(id string) *searchDoc) {
	m.t.Helper()
	docs, edits := make([]*searchDoc, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		more := ""
		if old := m.docs[id]; old != nil {
			more = fmt.Sprintf(`,"_rev":%q`, old.rev)
		}
		body := `{"_deleted":true}`
		if docs[i] = draw(id); docs[i] != nil {
			body = jsonText(docs[i])
		}
		edits[i] = fmt.Sprintf(`{"_id":%q%s,%s`, id, more, body[1:])
	}
	var results []struct {
		OK  bool
		Rev string
	}
	text := m.must("POST", "/pond/_bulk_docs", `{"docs":[`+strings.Join(edits, ",")+`]}`, "201", "202")
	if err := json.Unmarshal([]byte(text), &results); err != nil || len(results) != len(ids) {
		m.t.Fatalf("%.1000s: %v", text, err)
	}
	for i, id := range ids {
		if !results[i].OK {
			m.t.Fatalf("%s is not saved: %.1000s", id, text)
		}
		if docs[i] == nil {
			m.forget(id)
			continue
		}
		docs[i].rev = results[i].Rev
		m.keep(id, docs[i])
	}
}

func (m *searchModel) forget(id string) {
	delete(m.docs, id)
	m.search.Remove(id)
	m.nouveau.Remove(id)
}

// keep notes what a document is now.
func (m *searchModel) keep(id string, d *searchDoc) {
	m.docs[id] = d
	if d.Tags == nil {
		m.search.Remove(id)
		m.nouveau.Remove(id)
		return
	}
	values := []searchtest.Value{{Field: "default", Text: d.Text}, {Field: "title", Text: d.Title}}
	exact := []searchtest.Value{{Field: "kind", Text: d.Kind, Exact: true}, {Field: "serial", Number: float64(d.Serial), IsNumber: true}}
	for _, tag := range d.Tags {
		exact = append(exact, searchtest.Value{Field: "tag", Text: tag, Exact: true})
	}
	for _, n := range d.N {
		exact = append(exact, searchtest.Value{Field: "n", Number: float64(n), IsNumber: true})
	}
	m.search.Put(id, append(values, exact...))
	m.nouveau.Put(id, append(values, exact...))
}

// some draws different documents that are there.
func (m *searchModel) some(n int) []string {
	live := slices.Sorted(maps.Keys(m.docs))
	m.rng.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
	return live[:min(n, len(live))]
}

// change updates and deletes documents, and writes again some that were deleted.
func (m *searchModel) change() {
	for part := range slices.Chunk(m.some(len(m.docs)/5), 1000) {
		m.save(part, func(id string) *searchDoc {
			if m.rng.IntN(4) == 0 {
				return nil
			}
			return m.draw(id)
		})
	}
	var gone []string
	for _, id := range m.ids {
		if m.docs[id] == nil && m.rng.IntN(3) == 0 {
			gone = append(gone, id)
		}
	}
	for part := range slices.Chunk(gone, 1000) {
		m.save(part, func(id string) *searchDoc { return m.draw(id) })
	}
}

// purge forgets documents: of every third only a branch that had won, so that another
// winner is to be found.
func (m *searchModel) purge(n int) {
	for part := range slices.Chunk(m.some(n), 100) {
		wins, purges := []string{}, []string{}
		for i, id := range part {
			rev := m.docs[id].rev
			if i%3 == 0 {
				rev = fmt.Sprintf("9-%032x", m.rng.Uint64())
				wins = append(wins, fmt.Sprintf(`{"_id":%q,"_rev":%q,%s`, id, rev, jsonText(m.draw(id))[1:]))
			} else {
				m.forget(id)
			}
			purges = append(purges, fmt.Sprintf(`%q:[%q]`, id, rev))
		}
		m.must("POST", "/pond/_bulk_docs", `{"new_edits":false,"docs":[`+strings.Join(wins, ",")+`]}`, "201", "202")
		if m.rng.IntN(2) == 0 { // the index has it
			m.must("GET", "/pond/_design/d/_search/i?q=*:*", "", "200")
			m.must("GET", "/pond/_design/d/_nouveau/i?q=*:*", "", "200")
		}
		m.must("POST", "/pond/_purge", "{"+strings.Join(purges, ",")+"}", "201", "202")
	}
}

// cutPower cuts the power of a node in the middle of a build, and starts it again.
func (m *searchModel) cutPower(h *home) {
	m.change()
	<-time.After(pushed)
	left := h.disk.cutAfter(1+m.rng.Int64N(100), rand.New(rand.NewPCG(m.rng.Uint64(), 0)))
	for range 6 {
		m.must("GET", "/pond/_design/d/_search/i?q=*:*", "", "200")
		m.must("GET", "/pond/_design/d/_nouveau/i?q=*:*", "", "200")
	}
	disk := left()
	h.kill()
	h.keepOn(disk)
	h.start()
	h.soon("GET", "/_up", "", "200")
}
