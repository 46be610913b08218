package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// nowhere takes an answer and drops it.
type nowhere struct{ h http.Header }

func (n *nowhere) Header() http.Header         { return n.h }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

// benchNode is a node with a database db of n documents of about 1 KB.
func benchNode(b *testing.B, n int) *API {
	b.Helper()
	a := nodeAPI(b, nil)
	admin := "Authorization: Basic YWRtOnBhc3M="
	apitest.Ask(b, a, "PUT /db", "", admin)
	var docs strings.Builder
	for i := range n {
		docs.WriteString(`,{"_id":"` + strconv.Itoa(1_000_000+i) + `","text":"` + strings.Repeat("x", 1000) + `"}`)
	}
	if w := apitest.Ask(b, a, "POST /db/_bulk_docs", `{"docs":[`+docs.String()[1:]+`]}`, "Content-Type: application/json", admin); w.Code != 201 {
		b.Fatal(w.Code, w.Body)
	}
	return a
}

func benchGet(b *testing.B, a *API, target string, rows int) {
	b.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RequestURI = target
	r.Header.Set("Authorization", "Basic YWRtOnBhc3M=")
	w := &nowhere{h: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		a.ServeHTTP(w, r)
	}
	b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkGetDocument(b *testing.B) { benchGet(b, benchNode(b, 100), "/db/1000050", 1) }
func BenchmarkAllDocs(b *testing.B)     { benchGet(b, benchNode(b, 50_000), "/db/_all_docs", 50_000) }

func BenchmarkAllDocs20(b *testing.B) {
	benchGet(b, benchNode(b, 50_000), "/db/_all_docs?limit=20", 20)
}

func BenchmarkIncludeDocs(b *testing.B) {
	benchGet(b, benchNode(b, 20_000), "/db/_all_docs?include_docs=true", 20_000)
}
func BenchmarkChanges(b *testing.B) { benchGet(b, benchNode(b, 50_000), "/db/_changes", 50_000) }

func BenchmarkPutDocument(b *testing.B) {
	a := benchNode(b, 1)
	body := `{"text":"` + strings.Repeat("x", 1000) + `"}`
	w := &nowhere{h: http.Header{}}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		r := httptest.NewRequest(http.MethodPut, "/db/p"+strconv.Itoa(i), strings.NewReader(body))
		r.RequestURI = r.URL.Path
		r.Header.Set("Authorization", "Basic YWRtOnBhc3M=")
		clear(w.h)
		a.ServeHTTP(w, r)
	}
}

func BenchmarkBulkDocs(b *testing.B) {
	a := benchNode(b, 1)
	w := &nowhere{h: http.Header{}}
	b.ReportAllocs()
	const batch = 1000
	i := 0
	for b.Loop() {
		var docs strings.Builder
		for range batch {
			i++
			docs.WriteString(`,{"_id":"b` + strconv.Itoa(i) + `","text":"` + strings.Repeat("x", 1000) + `"}`)
		}
		r := httptest.NewRequest(http.MethodPost, "/db/_bulk_docs", strings.NewReader(`{"docs":[`+docs.String()[1:]+`]}`))
		r.RequestURI = r.URL.Path
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Basic YWRtOnBhc3M=")
		clear(w.h)
		a.ServeHTTP(w, r)
	}
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "docs/s")
}

// sink is an http.ResponseWriter that keeps nothing.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

// BenchmarkRequest measures a small request from ServeHTTP to the answer without its
// handler's work: admission, anonymous identity, routing, headers, counting.
func BenchmarkRequest(b *testing.B) {
	a := frontAPI(b, nil)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://127.0.0.1:5984/_up", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	r.RequestURI = "/_up"
	b.ReportAllocs()
	for b.Loop() {
		w := &sink{h: make(http.Header, 8)}
		a.ServeHTTP(w, r)
	}
}
