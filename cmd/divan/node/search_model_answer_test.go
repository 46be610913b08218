package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"divan/shard/search/searchtest"
	"divan/shard/search/syntax"
)

// searchQuestion is a query with what else is asked.
type searchQuestion struct {
	dialect syntax.Dialect
	text    string
	want    []string // ids that are to be found; in order when it is sorted
	limit   int
	sort    string // empty: by relevance
	facets  bool
}

func (q *searchQuestion) path() string {
	if q.dialect == syntax.Nouveau {
		return "/pond/_design/d/_nouveau/i"
	}
	return "/pond/_design/d/_search/i"
}

func (q *searchQuestion) String() string { return q.path() + " " + q.text }

// searchAnswer is that of both dialects.
type searchAnswer struct {
	Rows, Hits []struct {
		ID     string
		Fields struct{ Default string }
	}
	Total     int `json:"total_rows"`
	TotalHits int `json:"total_hits"`
	Bookmark  string
	Counts    map[string]map[string]float64
	Ranges    map[string]map[string]float64
}

// ask asks queries of both dialects, one after the other.
func (m *searchModel) ask(when string, queries int) {
	m.t.Helper()
	found, most := 0, 0
	for i := range queries {
		q := m.question([]syntax.Dialect{syntax.Search, syntax.Nouveau}[i%2])
		m.check(when, q)
		if most = max(most, len(q.want)); len(q.want) > 0 {
			found++
		}
	}
	m.t.Logf("%s: %d queries of %d documents, %d find something, %d at most", when, queries, len(m.docs), found, most)
}

// question draws a query whose answer the model is sure of.
func (m *searchModel) question(dialect syntax.Dialect) *searchQuestion {
	m.t.Helper()
	index := map[syntax.Dialect]*searchtest.Index{syntax.Search: m.search, syntax.Nouveau: m.nouveau}[dialect]
	for {
		q := &searchQuestion{dialect: dialect, text: m.query(dialect, 2).String(), facets: m.rng.IntN(3) == 0}
		tree, err := syntax.Parse(q.text, dialect)
		if err != nil {
			m.t.Fatalf("%s: %v", q.text, err)
		}
		var sure bool
		if q.want, sure = index.Find(tree); !sure {
			continue
		}
		switch m.rng.IntN(4) {
		case 0:
			q.sort = "serial"
		case 1:
			q.sort = "-serial"
		}
		if q.sort == "-serial" {
			slices.Reverse(q.want) // ids are in the order of serials
		}
		if q.limit = len(q.want) + 1; m.rng.IntN(4) == 0 {
			q.limit = len(q.want)/(1+m.rng.IntN(4)) + 1
		}
		return q
	}
}

func (m *searchModel) check(when string, q *searchQuestion) {
	m.t.Helper()
	bookmark, got := "", []string(nil)
	for page := 0; ; page++ {
		a, ok := m.page(q, bookmark)
		if !ok { // a shard was split
			m.check(when, q)
			return
		}
		if a.Total+a.TotalHits != len(q.want) {
			m.t.Fatalf("%s: %s finds %d of %d", when, q, a.Total+a.TotalHits, len(q.want))
		}
		rows := append(a.Rows, a.Hits...)
		if len(rows) != min(q.limit, len(q.want)-len(got)) {
			m.t.Fatalf("%s: %s has %d rows on page %d of %d, of %d", when, q, len(rows), page, q.limit, len(q.want))
		}
		if page == 0 && q.facets {
			m.checkFacets(when, q, a)
		}
		for _, r := range rows {
			if got = append(got, r.ID); m.docs[r.ID] == nil || m.docs[r.ID].Text != r.Fields.Default {
				m.t.Fatalf("%s: %s shows %s with %q", when, q, r.ID, r.Fields.Default)
			}
		}
		if bookmark = a.Bookmark; len(rows) < q.limit {
			break
		}
	}
	if q.sort == "" {
		slices.Sort(got)
	}
	if !slices.Equal(got, q.want) {
		m.t.Fatalf("%s: %s by %q finds %d of %d: %.1000v\nin place of %.1000v", when, q, q.sort, len(got), len(q.want), got, q.want)
	}
}

// page asks for the rows behind a bookmark; ok is false when it cannot be continued.
func (m *searchModel) page(q *searchQuestion, bookmark string) (a searchAnswer, ok bool) {
	m.t.Helper()
	body := map[string]any{"q": q.text, "limit": q.limit}
	if bookmark != "" {
		body["bookmark"] = bookmark
	}
	if q.sort != "" {
		body["sort"] = []string{q.sort}
	}
	if q.facets {
		body["counts"] = []string{"tag", "kind"}
		if body["ranges"] = json.RawMessage(`{"n":{"low":"[-20 TO 50]","high":"{50 TO Infinity]"}}`); q.dialect == syntax.Nouveau {
			body["ranges"] = json.RawMessage(`{"n":[{"label":"low","min":-20,"max":50},{"label":"high","min":50,"min_inclusive":false}]}`)
			body["top_n"] = 1000
		}
	}
	text := m.must("POST", q.path(), jsonText(body), "200", "400")
	if strings.Contains(text, "cannot be continued") && bookmark != "" && q.sort == "" {
		return a, false
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		m.t.Fatalf("%s: %.1000s: %v", q.text, text, err)
	}
	return a, true
}

// checkFacets counts documents anew.
func (m *searchModel) checkFacets(when string, q *searchQuestion, a searchAnswer) {
	m.t.Helper()
	counts := map[string]map[string]float64{"tag": {}, "kind": {}}
	ranges := map[string]map[string]float64{"n": {"low": 0, "high": 0}}
	for _, id := range q.want {
		d := m.docs[id]
		counts["kind"][d.Kind]++
		for i, tag := range d.Tags {
			if !slices.Contains(d.Tags[:i], tag) {
				counts["tag"][tag]++
			}
		}
		for _, n := range d.N {
			if n <= 50 {
				ranges["n"]["low"]++
			} else {
				ranges["n"]["high"]++
			}
		}
	}
	if got, want := fmt.Sprint(a.Counts), fmt.Sprint(counts); got != want {
		m.t.Errorf("%s: %s counts %s in place of %s", when, q, got, want)
	}
	for label, want := range ranges["n"] {
		if got := a.Ranges["n"][label]; got != want {
			m.t.Errorf("%s: %s counts %v in place of %v in %s", when, q, got, want, label)
		}
	}
}
