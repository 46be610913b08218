package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// BenchmarkFind is _find for one document of 20,000, through an index on its field.
func BenchmarkFind(b *testing.B) {
	a := nodeAPI(b, nil)
	headers := []string{"Authorization: Basic YWRtOnBhc3M=", "Content-Type: application/json"}
	apitest.Ask(b, a, "PUT /db?q=2", "", headers...)
	const docs = 20_000
	var list strings.Builder
	for i := range docs {
		fmt.Fprintf(&list, `,{"_id":"%d","n":%d,"text":"%s"}`, 1_000_000+i, i, strings.Repeat("x", 1000))
	}
	for _, request := range [][2]string{
		{"POST /db/_bulk_docs", `{"docs":[` + list.String()[1:] + `]}`},
		{"POST /db/_index", `{"index":{"fields":["n"]},"ddoc":"n","name":"n"}`},
		{"POST /db/_find", `{"selector":{"n":0}}`},
	} {
		if w := apitest.Ask(b, a, request[0], request[1], headers...); w.Code > 201 {
			b.Fatal(w.Code, w.Body)
		}
	}
	w := &nowhere{}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := httptest.NewRequest(http.MethodPost, "/db/_find", strings.NewReader(fmt.Sprintf(`{"selector":{"n":%d}}`, i%docs)))
		r.RequestURI = "/db/_find"
		r.Header.Set("Authorization", "Basic YWRtOnBhc3M=")
		r.Header.Set("Content-Type", "application/json")
		w.h = map[string][]string{}
		a.ServeHTTP(w, r)
	}
}
