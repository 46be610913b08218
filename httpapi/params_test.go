package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"divan/storage/fault"
)

func TestParseQuery(t *testing.T) {
	for _, tc := range []struct {
		raw  string
		want []param
	}{
		{"", nil},
		{"a=1&b=2&a=3", []param{{"a", "1"}, {"b", "2"}, {"a", "3"}}},
		{"a", []param{{"a", ""}}},
		{"a=&&b", []param{{"a", ""}, {"b", ""}}},
		{"a=b=c", []param{{"a", "b=c"}}},
		{"a+b=c+d%2B", []param{{"a b", "c d+"}}},
		{"%61=%FF", []param{{"a", "\xff"}}},
		{"a=1;b=2", []param{{"a", "1;b=2"}}},
	} {
		c := &call{scratch: &scratch{}}
		if err := c.parseQuery(tc.raw); err != nil || len(c.query) != len(tc.want) {
			t.Errorf("%q: %q, %v", tc.raw, c.query, err)
			continue
		}
		for i := range tc.want {
			if c.query[i] != tc.want[i] {
				t.Errorf("%q: %q, want %q", tc.raw, c.query, tc.want)
			}
		}
	}
	for _, raw := range []string{"a=%q", "%=1", "a=%2", "%zz"} {
		c := &call{scratch: &scratch{}}
		if err := c.parseQuery(raw); fault.Reason(err) != "invalid_url_encoding" {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// FuzzQuery holds the parser of query strings to net/url, and the parser of
// view parameters to its refusals: whatever comes, it is taken or refused with
// a fault that a client understands.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"limit=1&skip=x", "key=%22a%22", "keys=[1,2", "startkey=a+b&endkey=%7B%7D", "descending=TRUE&limit=-1",
		"a=%zz", "=&&=", "limit=99999999999999999999", "stale=ok&update=lazy&group_level=%01",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c := &call{scratch: &scratch{}}
		err := c.parseQuery(raw)
		if err != nil {
			if fault.Reason(err) != "invalid_url_encoding" {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if !strings.Contains(raw, ";") {
			want, err := url.ParseQuery(raw)
			if err != nil {
				t.Fatalf("%q is taken, net/url refuses it: %v", raw, err)
			}
			for name, values := range want {
				if got, ok := c.qs(name); !ok || got != values[0] {
					t.Fatalf("%q: %s is %q, want %q", raw, name, got, values[0])
				}
			}
		}
		v, err := parseViewQuery(c.query)
		switch {
		case err != nil && !fault.Is(err, fault.QueryParse) && !fault.Is(err, fault.BadRequest):
			t.Fatalf("%q: %v", raw, err)
		case err == nil && (v.limit < -1 || v.skip < 0 || v.groupLevel < -1):
			t.Fatalf("%q: %+v", raw, v)
		}
	})
}

// FuzzPath holds the splitting and decoding of paths to net/url.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/db/doc", "//a%2Fb//c+d", "/%zz", "/db/_design%2Fx/y", "/\xff/%ff", "/..", "/_local/x"} {
		f.Add(seed)
	}
	rt := newRouter(allRoutes())
	f.Fuzz(func(t *testing.T, raw string) {
		if !strings.HasPrefix(raw, "/") || strings.ContainsAny(raw, "?") {
			return
		}
		c := &call{scratch: &scratch{}, w: &response{}, method: http.MethodGet}
		c.w.c = c
		if err := c.parsePath(raw, true); err != nil {
			return
		}
		rt.route(c) // must find something or nothing, and not fail
		var want []string
		for segment := range strings.SplitSeq(raw, "/") {
			if segment == "" {
				continue
			}
			decoded, err := url.PathUnescape(strings.ReplaceAll(segment, "+", "%20"))
			if err != nil {
				t.Fatalf("%q is taken, net/url refuses it: %v", raw, err)
			}
			want = append(want, decoded)
		}
		if len(want) != len(c.path) {
			t.Fatalf("%q: %q, want %q", raw, c.path, want)
		}
		for i := range want {
			if c.path[i] != want[i] {
				t.Fatalf("%q: %q, want %q", raw, c.path, want)
			}
		}
	})
}

// sink is an http.ResponseWriter that keeps nothing.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

// BenchmarkCorridor is what a small request costs from ServeHTTP to the answer
// without its handler's work: admission, identity of nobody, routing, headers,
// counting.
func BenchmarkCorridor(b *testing.B) {
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
