package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"divan/httpapi/apitest"
	"divan/storage/storagetest"
)

// searched is a node with databases that are searched.
type searched struct {
	t *testing.T
	h http.Handler
}

func (s searched) ask(target, body string) (int, map[string]any) {
	s.t.Helper()
	w := apitest.Ask(s.t, s.h, target, body, "Authorization: Basic YWRtOnBhc3M=", "Content-Type: application/json")
	var out map[string]any
	if text := w.Body.Bytes(); len(text) > 0 && text[0] == '{' {
		apitest.Must(s.t, json.Unmarshal(text, &out))
	}
	return w.Code, out
}

func (s searched) must(status int, target, body string) map[string]any {
	s.t.Helper()
	got, out := s.ask(target, body)
	if got != status {
		s.t.Fatalf("%s %.200s: %d %v, want %d", target, body, got, out, status)
	}
	return out
}

// ids are those of the rows of an answer.
func ids(answer map[string]any) (out []string) {
	for _, member := range []string{"rows", "hits"} {
		rows, _ := answer[member].([]any)
		for _, r := range rows {
			row, _ := r.(map[string]any)
			id, _ := row["id"].(string)
			out = append(out, id)
		}
	}
	return out
}

const textIndexes = `{"indexes":{"i":{"index":"function (doc) { index('default', doc.text); index('n', doc.n, {facet: true}); }"}},` +
	`"nouveau":{"i":{"index":"function (doc) { index('text', 'default', doc.text); index('double', 'n', doc.n); }"}}}`

// fill makes a database of so many documents, of which each has the word "all".
func (s searched) fill(db string, docs int) {
	s.t.Helper()
	s.must(201, "PUT /"+db+"?q=2", "")
	s.must(201, "PUT /"+db+"/_design/d", textIndexes)
	var out []string
	for n := range docs {
		words := []string{"all", fmt.Sprint("in", db)}
		for k := range 20 {
			words = append(words, fmt.Sprintf("w%dx%d", n*7919%1009, k))
		}
		out = append(out, fmt.Sprintf(`{"_id":"d%04d","n":%d,"text":%q}`, n, n, strings.Join(words, " ")))
	}
	s.must(201, "POST /"+db+"/_bulk_docs", `{"docs":[`+strings.Join(out, ",")+`]}`)
}

// Queries that were made to take long, or much, are refused or answered, and what they leave
// out they say.
func TestOddFullTextQueries(t *testing.T) {
	storagetest.SkipShort(t)
	s := searched{t, nodeAPI(t, nil)}
	s.fill("pond", 400)
	nested := func(n int) string { return strings.Repeat("(", n) + "all" + strings.Repeat(")", n) }
	for _, c := range []struct {
		query           string
		status, nouveau int
		total           float64
	}{
		{"all", 200, 200, 400},
		{strings.Repeat("a", 100_000), 200, 200, 0},
		{strings.Repeat("b ", 10_000), 400, 400, 0},
		{nested(30), 200, 200, 400},
		{nested(100_000), 400, 400, 0},
		{"/(((w*)*)*)*nothing/", 200, 200, 0},
		{"/w[0-9]+x1/", 200, 200, 400},
		{"/" + strings.Repeat("(a|b)?", 5000) + "/", 400, 400, 0},
		{"*a*", 400, 400, 0},
		{"w*", 200, 200, 400},
		{strings.Repeat("w*x? ", 300), 200, 200, 400},
		{"w11x11~", 200, 200, -1},
		{"\"all inpond\"~100000", 200, 200, 400},
		{"n:[0 TO 1e400]", 200, 200, -1},
		{"all AND NOT n:[0 TO 9]", 200, 200, 390},
		{"_id:d00*", 200, 200, 100},
		{"all^1e30", 200, 400, 400},
		{"\\u00", 400, 400, 0},
		{"\x00", 200, 200, 0},
	} {
		for kind, want := range map[string]int{"_search": c.status, "_nouveau": c.nouveau} {
			body, err := json.Marshal(map[string]any{"q": c.query, "limit": 2})
			apitest.Must(t, err)
			status, answer := s.ask("POST /pond/_design/d/"+kind+"/i", string(body))
			total, _ := answer["total_rows"].(float64)
			if kind == "_nouveau" {
				total, _ = answer["total_hits"].(float64)
			}
			if status != want || status == 200 && c.total >= 0 && total != c.total {
				t.Errorf("%s %.60s: %d %.200v, want %d and %v", kind, c.query, status, answer, want, c.total)
			}
			if reason, _ := answer["reason"].(string); status != 200 && reason == "" {
				t.Errorf("%s %.60s: no reason", kind, c.query)
			}
		}
	}
}

// TestDeepPaging: pages follow one another without a gap, a repetition or an end, in any order.
func TestDeepPaging(t *testing.T) {
	s := searched{t, nodeAPI(t, nil)}
	s.fill("pond", 230)
	for _, c := range []struct{ kind, more string }{
		{"_search", ""},
		{"_search", `,"sort":"-n"`},
		{"_search", `,"sort":["n<number>","-<score>"]`},
		{"_nouveau", ""},
		{"_nouveau", `,"sort":["-n"]`},
		{"_nouveau", `,"sort":"_id"`},
	} {
		var all []string
		for bookmark := ""; ; {
			answer := s.must(200, "POST /pond/_design/d/"+c.kind+"/i", `{"q":"all","limit":7`+c.more+bookmark+`}`)
			page := ids(answer)
			if len(page) == 0 {
				break
			}
			all = append(all, page...)
			bookmark = fmt.Sprintf(`,"bookmark":%q`, answer["bookmark"])
		}
		slices.Sort(all)
		if len(slices.Compact(slices.Clone(all))) != 230 || len(all) != 230 {
			t.Errorf("%s%s: %d rows of 230", c.kind, c.more, len(all))
		}
	}
}

// TestFullTextNeighbours: a database that has the definition of another one, or its name after
// it, is found nothing of there.
func TestFullTextNeighbours(t *testing.T) {
	s := searched{t, nodeAPI(t, nil)}
	s.fill("pond", 3)
	s.fill("lake", 5)
	find := func(db, word string, want int) {
		t.Helper()
		for _, kind := range []string{"_search", "_nouveau"} {
			if got := ids(s.must(200, "GET /"+db+"/_design/d/"+kind+"/i?q="+word, "")); len(got) != want {
				t.Errorf("%s of %s in %s: %v, want %d", kind, word, db, got, want)
			}
		}
	}
	find("pond", "all", 3)
	find("lake", "all", 5)
	find("pond", "inlake", 0)
	s.must(200, "DELETE /pond", "")
	s.fill("pond", 2)
	find("pond", "all", 2)
	s.must(200, "DELETE /lake", "")
	s.must(201, "PUT /lake", "")
	s.must(201, "PUT /lake/_design/d", textIndexes)
	find("lake", "all", 0)
	s.must(202, "POST /pond/_search_cleanup", "")
	s.must(202, "POST /pond/_view_cleanup", "")
	find("pond", "inpond", 2)
}

// eitherStatus stands for what docs/decisions/0054 says of memory (200, the document is left out) and of
// time (500): which of them ends first depends on the machine.
const eitherStatus = 0

// TestIndexFunctionsHarmNobody: a function that loops, throws or takes all memory is an error
// of its own index, and of nothing else.
func TestIndexFunctionsHarmNobody(t *testing.T) {
	storagetest.SkipShort(t)
	s := searched{t, nodeAPI(t, map[string]map[string]string{"couchdb": {"os_process_timeout": "500"}})}
	s.fill("pond", 3)
	s.must(201, "PUT /bad", "")
	s.must(201, "PUT /bad/a", `{"n":1}`)
	s.must(201, "PUT /bad/b", `{"n":2}`)
	for name, c := range map[string]struct {
		function string
		status   int
		rows     int
	}{
		"loops":     {"for (;;) {}", 500, 0},
		"eats":      {"var a = []; for (;;) a.push(new Array(100000).join('x'))", eitherStatus, 0},
		"throws":    {"if (doc.n == 1) throw 'no'; index('n', doc.n)", 200, 1},
		"replaces":  {"index = null; index('n', doc.n)", 200, 0},
		"late":      {"index('n', doc.n); undefined_function()", 200, 0},
		"undefined": {"index('x', doc.missing); index('n', doc.n)", 200, 0},
	} {
		body, err := json.Marshal(map[string]any{"indexes": map[string]any{"i": map[string]any{"index": "function (doc) { " + c.function + " }"}}})
		apitest.Must(t, err)
		s.must(201, "PUT /bad/_design/"+name, string(body))
		status, answer := s.ask("GET /bad/_design/"+name+"/_search/i?q="+url.QueryEscape("*:*"), "")
		if c.status == eitherStatus && (status == 200 || status == 500) {
			c.status = status
		}
		if status != c.status || len(ids(answer)) != c.rows {
			t.Errorf("%s: %d %.200v, want %d and %d rows", name, status, answer, c.status, c.rows)
		}
		if got := ids(s.must(200, "GET /pond/_design/d/_search/i?q=all", "")); len(got) != 3 {
			t.Errorf("beside %s the other database has %v", name, got)
		}
	}
}
