package core_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"divan/httpapi"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
)

func TestRouterAllow(t *testing.T) {
	rt := wholeRouter(t)
	for _, tc := range []struct {
		path, allow string
		allowed     []string
	}{
		{"/", "GET,HEAD", []string{"GET"}},
		{"//", "GET,HEAD", []string{"GET"}},
		{"/_up", "GET,HEAD", []string{"GET"}},
		{"/_%75p", "GET,HEAD", []string{"GET"}},
		{"/_up/", "GET,HEAD", []string{"GET"}},
		{"/_uuids", "GET", []string{"GET"}},
		{"/_all_dbs", "GET,HEAD", []string{"GET"}},
		{"/_dbs_info", "GET,HEAD,POST", []string{"GET", "POST"}},
		{"/_membership", "GET", []string{"GET"}},
		{"/_active_tasks", "GET,HEAD", []string{"GET"}},
		{"/_cluster_setup", "GET,POST", []string{"GET", "POST"}},
		{"/_reload_query_servers", "POST", []string{"POST"}},
		{"/db", "DELETE,GET,HEAD,POST", []string{"DELETE", "GET", "POST", "PUT"}},
		{"/db/", "DELETE,GET,HEAD,POST", []string{"DELETE", "GET", "POST", "PUT"}},
		{"/a%2Fb", "DELETE,GET,HEAD,POST", []string{"DELETE", "GET", "POST", "PUT"}},
		{"/_users", "DELETE,GET,HEAD,POST", []string{"DELETE", "GET", "POST", "PUT"}},
		{"/db/_ensure_full_commit", "POST", []string{"POST"}},
		{"/db/_compact", "POST", []string{"POST"}},
		{"/db/_compact/d", "POST", []string{"POST"}},
		{"/db/_view_cleanup", "POST", []string{"POST"}},
		{"/db/_sync_shards", "POST", []string{"POST"}},
		{"/db/_security", "PUT,GET", []string{"GET", "PUT"}},
		{"/db/_revs_limit", "PUT,GET", []string{"GET", "PUT"}},
		{"/db/_purged_infos_limit", "GET,PUT", []string{"GET", "PUT"}},
		{"/db/_shards", "GET", []string{"GET"}},
		{"/db/_shards/a%2Fb", "GET", []string{"GET"}},
		{"/db/_shards/_design%2Fd", "GET", []string{"GET"}},
		{"/db/_purge", "POST", []string{"POST"}},
		{"/db/_purged_infos", "GET", []string{"GET"}},
		{"/db/_revs_diff", "POST", []string{"POST"}},
		{"/db/_missing_revs", "POST", []string{"POST"}},
		{"/db/_partition/p", "GET", []string{"GET"}},
		{"/db/doc", "DELETE,GET,HEAD,POST,PUT,COPY", []string{"COPY", "DELETE", "GET", "POST", "PUT"}},
		{"/db/_nope", "DELETE,GET,HEAD,POST,PUT,COPY", []string{"COPY", "DELETE", "GET", "POST", "PUT"}},
		{"/db//doc/", "DELETE,GET,HEAD,POST,PUT,COPY", []string{"COPY", "DELETE", "GET", "POST", "PUT"}},
		{"/db/_design/d", "DELETE,GET,HEAD,POST,PUT,COPY", []string{"COPY", "DELETE", "GET", "POST", "PUT"}},
		{"/db/_design%2Fd", "DELETE,GET,HEAD,POST,PUT,COPY", []string{"COPY", "DELETE", "GET", "POST", "PUT"}},
		{"/db/_local/l", "DELETE,GET,HEAD,POST,PUT,COPY", []string{"COPY", "DELETE", "GET", "POST", "PUT"}},
		{"/db/_local%2fl", "DELETE,GET,HEAD,POST,PUT,COPY", []string{"COPY", "DELETE", "GET", "POST", "PUT"}},
		{"/db/doc/a/b/c", "DELETE,GET,HEAD,PUT", []string{"DELETE", "GET", "PUT"}},
		{"/db/_design/d/_compact", "DELETE,GET,HEAD,PUT", []string{"DELETE", "GET", "PUT"}},
	} {
		c, ok := mustFind(t, rt, tc.path)
		if !ok || core.EndpointOf(c) == nil {
			t.Errorf("%s: no route", tc.path)
			continue
		}
		if core.EndpointOf(c).Allow != tc.allow {
			t.Errorf("%s: Allow %q, want %q", tc.path, core.EndpointOf(c).Allow, tc.allow)
		}
		var got []string
		for _, m := range []string{"COPY", http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
			if core.HandlerOf(c, m) != nil {
				got = append(got, m)
			}
		}
		if len(got) != len(tc.allowed) {
			t.Errorf("%s: methods %v, want %v", tc.path, got, tc.allowed)
			continue
		}
		for i := range got {
			if got[i] != tc.allowed[i] {
				t.Errorf("%s: methods %v, want %v", tc.path, got, tc.allowed)
			}
		}
	}
}

func TestRouterTargets(t *testing.T) {
	rt := wholeRouter(t)
	for _, tc := range []struct {
		path, db, doc string
		rest          []string
	}{
		{"/db", "db", "", nil},
		{"/a%2Fb%2B", "a/b+", "", nil},
		{"/db/a+b", "db", "a b", nil},
		{"/db/a%2Bb", "db", "a+b", nil},
		{"/db/a%2Fb", "db", "a/b", nil},
		{"/db/a/b%2Fc//d", "db", "a", []string{"b/c", "d"}},
		{"/db/_design/d", "db", "_design/d", nil},
		{"/db/_design%2Fd", "db", "_design/d", nil},
		{"/db/_design/d/_view/v", "db", "_design/d", []string{"_view", "v"}},
		{"/db/_design", "db", "_design", nil},
		{"/db/_local/l", "db", "_local/l", nil},
		{"/db/_all_docs", "db", "", nil},
		{"/_up", "", "", nil},
		{"/_nothing", "_nothing", "", nil},
		{"/_users/org.couchdb.user:x", "_users", "org.couchdb.user:x", nil},
		{"/db/%22q%22%23%3F%25%26%3A%2C%3D%40", "db", `"q"#?%&:,=@`, nil},
		{`/db/a"b%2Fc|d`, "db", `a"b/c|d`, nil},
		{"/db/%FF%FE", "db", "\xff\xfe", nil},
		{"/db/..", "db", "..", nil},
		{"/db/./x", "db", ".", []string{"x"}},
	} {
		c, ok := mustFind(t, rt, tc.path)
		if !ok {
			t.Errorf("%s: no route", tc.path)
		}
		if c.DBName != tc.db || c.DocID != tc.doc || len(c.Rest) != len(tc.rest) {
			t.Errorf("%s: got db %q doc %q rest %q", tc.path, c.DBName, c.DocID, c.Rest)
			continue
		}
		for i := range tc.rest {
			if c.Rest[i] != tc.rest[i] {
				t.Errorf("%s: got rest %q, want %q", tc.path, c.Rest, tc.rest)
			}
		}
	}
}

// BenchmarkRoute is what a document write pays for finding its endpoint.
func BenchmarkRoute(b *testing.B) {
	rt := wholeRouter(b)
	for _, path := range []string{"/db/doc-00001234", "/db/part:doc%2F1", "/db/_bulk_docs", "/db/_all_docs", "/db/_changes", "/_up"} {
		b.Run(path[1:], func(b *testing.B) {
			find := core.RouteAgain(rt)
			b.ReportAllocs()
			for b.Loop() {
				if !find(path) {
					b.Fatal("no route")
				}
			}
		})
	}
}

// TestShortRoutes: what the router answers without asking the patterns is what
// they would say.
func TestShortRoutes(t *testing.T) {
	rt := wholeRouter(t)
	patterns := core.PatternsOnly(rt)
	last := []string{
		"", "/", "x", "a%2Fb", "a+b", "a b", "%0A", "..", ".", "{doc}", "_", "_x", "_design", "_design/d", "_design%2Fd", "_local",
		"_local/l", "x/y", "_all_docs/", "_all_docs/x", "_all%5Fdocs", "_all_docs%2F", "x/_all_docs", "favicon.ico", "\xff", "%FF",
	}
	for _, path := range core.PathsOf(rt) {
		last = append(last, path[1:], url.PathEscape(path[1:]), path[1:]+"x", strings.TrimPrefix(path[1:], "_"))
	}
	for _, l := range last {
		for _, first := range []string{"/", "/db/", "/_users/", "/a%2Fb/", "//db//", "/favicon.ico/"} {
			sameRoute(t, rt, patterns, first+l)
		}
	}
}

func FuzzShortRoutes(f *testing.F) {
	for _, path := range []string{"/", "/db", "/db/doc", "/db/_all_docs", "/db/_design/d", "/_up", "/db/a%2Fb", "/db/\n", "/db/_nope"} {
		f.Add(path)
	}
	rt := wholeRouter(f)
	patterns := core.PatternsOnly(rt)
	f.Fuzz(func(t *testing.T, path string) { sameRoute(t, rt, patterns, path) })
}

// FuzzPath holds the splitting and decoding of paths to net/url.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/db/doc", "//a%2Fb//c+d", "/%zz", "/db/_design%2Fx/y", "/\xff/%ff", "/..", "/_local/x"} {
		f.Add(seed)
	}
	rt := wholeRouter(f)
	f.Fuzz(func(t *testing.T, raw string) {
		if !strings.HasPrefix(raw, "/") || strings.ContainsAny(raw, "?") {
			return
		}
		c, _, err := core.FindRoute(rt, raw) // must find something or nothing, and not fail
		if err != nil {
			return
		}
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
		if len(want) != len(c.Path) {
			t.Fatalf("%q: %q, want %q", raw, c.Path, want)
		}
		for i := range want {
			if c.Path[i] != want[i] {
				t.Fatalf("%q: %q, want %q", raw, c.Path, want)
			}
		}
	})
}

// mustFind finds the endpoint of a path that can be parsed.
func mustFind(tb testing.TB, rt *core.Router, path string) (*core.Call, bool) {
	tb.Helper()
	c, ok, err := core.FindRoute(rt, path)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return c, ok
}

// sameRoute compares what a path leads to with the patterns and without.
func sameRoute(t *testing.T, rt, patterns *core.Router, path string) {
	t.Helper()
	a, foundA, err := core.FindRoute(rt, path)
	if err != nil {
		return
	}
	b, foundB, err := core.FindRoute(patterns, path)
	if err != nil {
		t.Fatal(err)
	}
	ra, rb := core.EndpointOf(a), core.EndpointOf(b)
	if foundA != foundB || (ra == nil) != (rb == nil) {
		t.Fatalf("%q: found %v, with patterns only %v", path, foundA, foundB)
	}
	if ra != nil && (ra.Table != rb.Table || ra.Path != rb.Path) {
		t.Errorf("%q: %q, with patterns only %q", path, ra.Path, rb.Path)
	}
	if a.DBName != b.DBName || a.DocID != b.DocID || !slices.Equal(a.Rest, b.Rest) {
		t.Errorf("%q: another target than with patterns only", path)
	}
}

// wholeRouter is the router of the whole API.
func wholeRouter(tb testing.TB) *core.Router {
	tb.Helper()
	a, err := httpapi.New(apitest.FrontDeps(tb, nil))
	apitest.Must(tb, err)
	return core.RouterOf(a.API)
}
