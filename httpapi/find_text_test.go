package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// answered is the answer of a query.
type answered struct {
	Docs []struct {
		ID string `json:"_id"`
	}
	Bookmark string
	Stats    struct {
		Docs    int `json:"total_docs_examined"`
		Results int `json:"results_returned"`
	} `json:"execution_stats"`
	Warning string
}

// findDocs asks with the members of a request.
func findDocs(t *testing.T, s *site, members string) (out answered) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.text(200, "POST", "/db/_find", "{"+members+"}")), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// textSite is a database with documents d000 to d299, whose n is their number, and a text
// index of them.
func textSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=2", nil)
	var docs []string
	for i := range 300 {
		docs = append(docs, fmt.Sprintf(`{"_id":"d%03d","n":%d,"word":"%s","tags":["t%d"]}`, i, i, []string{"odd", "even"}[(i+1)%2], i%3))
	}
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[`+strings.Join(docs, ",")+`]}`)
	s.text(200, "POST", "/db/_index", `{"type":"text","ddoc":"t","name":"all","index":{}}`)
	return s
}

// TestTextPages: pages of a query whose index finds far more than matches have every match
// once, with an order and without.
func TestTextPages(t *testing.T) {
	s := textSite(t)
	for _, sort := range []string{"", `,"sort":["n:number"]`, `,"sort":[{"word:string":"desc"},{"n:number":"desc"}]`} {
		selector := `"selector":{"n":{"$mod":[7,3]},"word":{"$gt":"a"}}` + sort
		var got []string
		bookmark := "nil"
		for page := 0; ; page++ {
			a := findDocs(t, s, selector+`,"limit":4,"bookmark":"`+bookmark+`"`)
			for _, d := range a.Docs {
				got = append(got, d.ID)
			}
			if len(a.Docs) == 0 || page > 300 {
				break
			}
			bookmark = a.Bookmark
		}
		var want []string
		for i := 3; i < 300; i += 7 {
			want = append(want, fmt.Sprintf("d%03d", i))
		}
		if strings.Contains(sort, "word") {
			slices.SortStableFunc(want, func(a, b string) int { // odd numbers first, the largest first
				x, y := int(a[3]-'0')%2, int(b[3]-'0')%2
				if x != y {
					return y - x
				}
				return strings.Compare(b, a)
			})
		} else if sort == "" {
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", sort, got, want)
		}
		if n := s.text(200, "POST", "/db/_find", `{`+selector+`,"count":true}`); !strings.HasPrefix(n, fmt.Sprintf(`{"count":%d`, len(want))) {
			t.Errorf("%s: %s, want %d", sort, n, len(want))
		}
	}
	a := findDocs(t, s, `"selector":{"word":"odd"},"sort":["n:number"],"limit":2`)
	refused := s.text(400, "POST", "/db/_find", `{"selector":{"word":"odd"},"sort":["n:number","word:string"],"bookmark":"`+a.Bookmark+`"}`)
	if !strings.Contains(refused, "invalid_bookmark") {
		t.Error(refused)
	}
}

// TestTextLimits: an answer has as many rows as the configuration says, at most, and the rest
// comes by the bookmark; figures are of what was looked at.
func TestTextLimits(t *testing.T) {
	s := textSite(t)
	s.text(200, "PUT", "/_node/_local/_config/dreyfus/max_limit", `"50"`)
	a := findDocs(t, s, `"selector":{"n":{"$gte":0}},"sort":["n:number"],"limit":250,"skip":10,"execution_stats":true`)
	if len(a.Docs) != 50 || a.Docs[0].ID != "d010" || a.Stats.Docs != 60 || a.Stats.Results != 50 {
		t.Errorf("%d rows from %s, %+v", len(a.Docs), a.Docs[0].ID, a.Stats)
	}
	if a = findDocs(t, s, `"selector":{"n":{"$gte":0}},"sort":["n:number"],"limit":250,"bookmark":"`+a.Bookmark+`"`); len(a.Docs) != 50 || a.Docs[0].ID != "d060" {
		t.Errorf("%d rows from %s", len(a.Docs), a.Docs[0].ID)
	}
	if got := s.text(200, "POST", "/db/_explain", `{"selector":{"n":1},"limit":250}`); !strings.Contains(got, `},"limit":50,"skip":0`) {
		t.Error(got)
	}
}

// TestTextOfManyValues: a list longer than a query of full text may be is looked for all the
// same.
func TestTextOfManyValues(t *testing.T) {
	s := textSite(t)
	for _, n := range []int{100, 3000, 20_000} {
		for operator, want := range map[string]string{"$in": `{"count":100`, "$nin": `{"count":200`} {
			var values []string
			for i := range n {
				values = append(values, fmt.Sprint(i%100))
			}
			list := strings.Join(values, ",")
			if got := s.text(200, "POST", "/db/_find", `{"selector":{"n":{"`+operator+`":[`+list+`]}},"count":true,"use_index":"t","allow_fallback":false}`); !strings.HasPrefix(got, want) {
				t.Errorf("%s of %d: %s", operator, n, got)
			}
		}
	}
}

// TestTextChoice: what is told about the choice among text indexes and others.
func TestTextChoice(t *testing.T) {
	s := textSite(t)
	explain := func(status int, body string, want ...string) {
		t.Helper()
		got := s.text(status, "POST", "/db/_explain", body)
		for _, one := range want {
			if !strings.Contains(got, one) {
				t.Errorf("%s: %s is not in %s", body, one, got)
			}
		}
	}
	explain(200, `{"selector":{"n":1}}`, `"name":"all","type":"text"`, `"reasons":[{"name":"unfavored_type"}]`, `{"type":"text","indexable_fields":["n:number"],"unindexable_fields":[]}`, `"partition":null,"sort":"relevance"`)
	explain(200, `{"selector":{}}`, `"name":"_all_docs"`, `"reasons":[{"name":"empty_selector"}]`)
	explain(200, `{"selector":{"n":{"$keyMapMatch":{"$eq":"a"}}}}`, `"name":"_all_docs"`, `"reasons":[{"name":"field_mismatch"}]`)
	explain(400, `{"selector":{"n":{"$keyMapMatch":{"$eq":"a"}}},"use_index":"t"}`, "Invalid text operator: $keyMapMatch")
	s.text(200, "POST", "/db/_index", `{"index":{"fields":["n"]},"ddoc":"j","name":"n"}`)
	explain(200, `{"selector":{"n":1}}`, `"name":"n","type":"json"`, `"reasons":[{"name":"unfavored_type"}]`)
	explain(200, `{"selector":{"n":1,"$text":"x"}}`, `"name":"all","type":"text"`, `"reasons":[{"name":"needs_text_search"}]`)
	s.text(200, "POST", "/db/_index", `{"type":"nouveau","index":{},"ddoc":"v","name":"v"}`)
	explain(200, `{"selector":{"word":"odd"}}`, `"name":"all","type":"text"`)
	explain(200, `{"selector":{"word":"odd"},"use_index":"v","sort":[{"n:number":"desc"}]}`, `"name":"v","type":"nouveau"`, `"sort":["-n_3anumber"]`)
	explain(400, `{"selector":{"word":"odd"},"use_index":"v","sort":["word"]}`, "text_sort_error")
	s.text(200, "POST", "/db/_index", `{"type":"nouveau","index":{},"ddoc":"w","name":"w"}`)
	explain(200, `{"selector":{"word":"odd"}}`, `"name":"all","type":"text"`)
	s.text(200, "POST", "/db/_index", `{"type":"text","index":{"fields":[{"name":"word","type":"string"}]},"ddoc":"x","name":"x"}`)
	explain(400, `{"selector":{"word":"odd"}}`, "multiple_text_indexes")
	explain(200, `{"selector":{"tags":{"$size":1},"n":{"$lt":3}},"use_index":"t"}`, `"name":"all"`)
	s.text(200, "DELETE", "/db/_index/t/text/all", nil)
	s.text(200, "DELETE", "/db/_index/x/text/x", nil)
	explain(400, `{"selector":{"word":"odd"}}`, "multiple_nouveau_indexes")
}

// TestTextIndexOfClients: clients may write the design document themselves, also one whose
// index cannot be: that is told when it is asked.
func TestTextIndexOfClients(t *testing.T) {
	s := textSite(t)
	s.text(200, "DELETE", "/db/_index/t/text/all", nil)
	s.text(201, "PUT", "/db/_design/own", `{"language":"query","indexes":{"f":{"index":"function (doc) {}"},"i":{"index":{"fields":[{"name":"n","type":"number"}]}}}}`)
	if got := s.text(200, "GET", "/db/_index", nil); !strings.Contains(got, `"total_rows":2`) || !strings.Contains(got, `"def":{"fields":[{"n":"number"}]}`) {
		t.Error(got)
	}
	if a := findDocs(t, s, `"selector":{"n":{"$lt":2}}`); len(a.Docs) != 2 || a.Warning != "" {
		t.Errorf("%+v", a)
	}
	s.text(201, "PUT", "/db/_design/bad", `{"language":"query","indexes":{"i":{"index":{"fields":[{"name":"word","type":"string"}]},"analyzer":"nosuch"}}}`)
	if got := s.text(400, "POST", "/db/_find", `{"selector":{"word":"odd"},"use_index":"bad"}`); !strings.Contains(got, "no_such_analyzer") {
		t.Error(got)
	}
	if a := findDocs(t, s, `"selector":{"word":"odd"},"limit":1`); len(a.Docs) != 1 { // it is used only where it is named
		t.Errorf("%+v", a)
	}
}

// TestTextIndexDisabled: an administrator may forbid indexes of all fields.
func TestTextIndexDisabled(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(200, "PUT", "/_node/_local/_config/mango/index_all_disabled", `"true"`)
	if got := s.text(403, "POST", "/db/_index", `{"type":"text","index":{}}`); !strings.Contains(got, `"index_all_disabled"`) {
		t.Error(got)
	}
	s.text(200, "POST", "/db/_index", `{"type":"text","index":{"fields":[{"name":"a","type":"string"}]}}`)
}
