package httpapi

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/shard/query"
)

const jsonBody = "Content-Type: application/json"

// TestExpensiveSelectors runs selectors on 300 documents of 5 KB that take a second and
// more with each: the client is told so, in every use of a selector.
func TestExpensiveSelectors(t *testing.T) {
	a := nodeAPI(t, nil)
	const admin = "Authorization: Basic YWRtOnBhc3M="
	apitest.Ask(t, a, "PUT /db?q=1", "", admin)
	document := `{"a":"` + strings.Repeat("a", 5000) + `!"}`
	apitest.Ask(t, a, "POST /db/_bulk_docs", `{"docs":[`+strings.Repeat(document+",", 299)+document+`]}`, admin, jsonBody)

	backReference := `{"a":{"$regex":"(a+)\\1b"}}`
	patterns := `{"$or":[` + strings.Repeat(`{"a":{"$regex":"(?:[ab]{0,9}[bc]{0,9}){3}x"}},`, 2000) + `{"b":1}]}`
	for _, c := range []struct{ line, body, failure string }{
		{"POST /db/_find", `{"selector":` + backReference + `}`, "selector_too_expensive"},
		{"POST /db/_find", `{"selector":` + patterns + `}`, "selector_too_expensive"},
		{"POST /db/_find", `{"selector":` + backReference + `,"r":2}`, "selector_too_expensive"},
		{"POST /db/_find", `{"selector":` + backReference + `,"count":true}`, "selector_too_expensive"},
		{"POST /db/_find", `{"selector":{"a":{"$regex":"(a{1000}){1000}"}}}`, "bad_arg"},
		{"POST /db/_changes?filter=_selector", `{"selector":` + backReference + `}`, "selector_too_expensive"},
		{"POST /db/_index", `{"index":{"fields":["a"],"partial_filter_selector":` + backReference + `},"ddoc":"i","name":"i"}`, ""},
		{"POST /db/_find", `{"selector":{"a":{"$gt":1}},"use_index":"i"}`, "selector_too_expensive"},
	} {
		w := apitest.Ask(t, a, c.line, c.body, admin, jsonBody)
		if w.Code >= 500 || c.failure != "" && (w.Code != 400 || !strings.Contains(w.Body.String(), `"error":"`+c.failure+`"`)) {
			t.Errorf("%s %.60s: %d %.200s", c.line, c.body, w.Code, w.Body)
		}
	}
}

// TestExpensiveSelectorsEndWithTheirRequest has the client leave.
func TestExpensiveSelectorsEndWithTheirRequest(t *testing.T) {
	a := nodeAPI(t, nil)
	const admin = "Authorization: Basic YWRtOnBhc3M="
	apitest.Ask(t, a, "PUT /db?q=1", "", admin)
	document := `{"a":"` + strings.Repeat("a", 50_000) + `!"}`
	apitest.Ask(t, a, "POST /db/_bulk_docs", `{"docs":[`+strings.Repeat(document+",", 299)+document+`]}`, admin, jsonBody)

	// One document takes some hundred milliseconds, within its limit.
	selector := `{"$or":[` + strings.Repeat(`{"a":{"$regex":"(?:[ab]{0,9}[bc]{0,9}){3}x"}},`, 100) + `{"b":1}]}`
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r := apitest.Request(t, "POST /db/_find", `{"selector":`+selector+`}`, []string{admin, jsonBody}).WithContext(ctx)
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	if strings.Contains(w.Body.String(), `"bookmark"`) {
		t.Error("work went on to the end")
	}
}

// TestExpensiveSelectorsWait: what takes long waits for its turn where documents are
// read from several copies, too.
func TestExpensiveSelectorsWait(t *testing.T) {
	gate := query.NewGate(2)
	gate <- struct{}{}
	a := nodeAs(t, "divan@127.0.0.1", nil, func(d *core.Deps) { d.Heavy = gate })
	const admin = "Authorization: Basic YWRtOnBhc3M="
	apitest.Ask(t, a, "PUT /db?q=1", "", admin)
	apitest.Ask(t, a, "PUT /db/x", `{"a":"`+strings.Repeat("a", 5000)+`!"}`, admin, jsonBody)
	body := `{"selector":{"$or":[` + strings.Repeat(`{"a":{"$regex":"(?:[ab]{0,9}[bc]{0,9}){3}x"}},`, 2000) + `{"b":1}]},"r":2}`
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	w := httptest.NewRecorder()
	a.ServeHTTP(w, apitest.Request(t, "POST /db/_find", body, []string{admin, jsonBody}).WithContext(ctx))
	if strings.Contains(w.Body.String(), "selector_too_expensive") {
		t.Error("it does not wait")
	}
	<-gate
	if w := apitest.Ask(t, a, "POST /db/_find", body, admin, jsonBody); !strings.Contains(w.Body.String(), "selector_too_expensive") {
		t.Errorf("with a place: %d %s", w.Code, w.Body)
	}
}
