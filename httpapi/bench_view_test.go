package httpapi

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// BenchmarkView: 20 rows from a random key on, a reduction of a random range, and a
// thousand groups, of 50,000 documents, from ServeHTTP to the answer.
func BenchmarkView(b *testing.B) {
	a := nodeAPI(b, nil)
	admin := "Authorization: Basic YWRtOnBhc3M="
	apitest.Ask(b, a, "PUT /db", "", admin)
	rnd := rand.New(rand.NewPCG(1, 2))
	const batch = 5000
	for from := 0; from < 50_000; from += batch {
		var docs strings.Builder
		for i := from; i < from+batch; i++ {
			fmt.Fprintf(&docs, `,{"_id":"%08d","n":%d,"value":%g}`, i, i, rnd.Float64()*1000)
		}
		apitest.Ask(b, a, "POST /db/_bulk_docs", `{"docs":[`+docs.String()[1:]+`]}`, "Content-Type: application/json", admin)
	}
	apitest.Ask(b, a, "PUT /db/_design/v", `{"views":{
		"by_value":{"map":"function (doc) { emit(doc.value, doc.n); }","reduce":"_sum"},
		"by_group":{"map":"function (doc) { emit([doc.n % 1000, doc.n], doc.value); }","reduce":"_stats"}}}`, admin)
	for name, query := range map[string]func() string{
		"range": func() string { return fmt.Sprintf("by_value?reduce=false&limit=20&startkey=%d", rnd.IntN(990)) },
		"reduce": func() string {
			lo := rnd.IntN(990)
			return fmt.Sprintf("by_value?startkey=%d&endkey=%d", lo, lo+1+rnd.IntN(1000-lo))
		},
		"group": func() string { return "by_group?group_level=1" },
	} {
		if w := apitest.Ask(b, a, "GET /db/_design/v/_view/"+query(), "", admin); w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
		b.Run(name, func(b *testing.B) {
			w := &nowhere{h: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				target := "/db/_design/v/_view/" + query()
				r := httptest.NewRequest(http.MethodGet, target, nil)
				r.RequestURI = target
				r.Header.Set("Authorization", "Basic YWRtOnBhc3M=")
				clear(w.h)
				a.ServeHTTP(w, r)
			}
		})
	}
}
