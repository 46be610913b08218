package httpapi

import (
	"net/http"
	"testing"
)

// routeOf finds the endpoint of a path.
func routeOf(tb testing.TB, rt *router, path string) (*call, bool) {
	tb.Helper()
	c := &call{scratch: &scratch{}, w: &response{}}
	c.w.c = c
	if err := c.parsePath(path, true); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return c, rt.route(c)
}

func TestRouterAllow(t *testing.T) {
	rt := newRouter(allRoutes())
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
		c, ok := routeOf(t, rt, tc.path)
		if !ok || c.route == nil {
			t.Errorf("%s: no route", tc.path)
			continue
		}
		if c.route.allow != tc.allow {
			t.Errorf("%s: Allow %q, want %q", tc.path, c.route.allow, tc.allow)
		}
		var got []string
		for _, m := range []string{"COPY", http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
			if c.route.handlerFor(m) != nil {
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
	rt := newRouter(allRoutes())
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
		c, ok := routeOf(t, rt, tc.path)
		if !ok {
			t.Errorf("%s: no route", tc.path)
		}
		if c.dbName != tc.db || c.docID != tc.doc || len(c.rest) != len(tc.rest) {
			t.Errorf("%s: got db %q doc %q rest %q", tc.path, c.dbName, c.docID, c.rest)
			continue
		}
		for i := range tc.rest {
			if c.rest[i] != tc.rest[i] {
				t.Errorf("%s: got rest %q, want %q", tc.path, c.rest, tc.rest)
			}
		}
	}
}

func TestPathEscapesRefused(t *testing.T) {
	for _, path := range []string{"/_up%zz", "/_up%4", "/a/%", "/a%2", "/%gg/x"} {
		c := &call{scratch: &scratch{}}
		if err := c.parsePath(path, true); err == nil {
			t.Errorf("%s was taken as %q", path, c.path)
		}
	}
}

// BenchmarkRoute is what a document write pays for finding its endpoint.
func BenchmarkRoute(b *testing.B) {
	rt := newRouter(allRoutes())
	for _, path := range []string{"/db/doc-00001234", "/db/part:doc%2F1", "/db/_bulk_docs", "/db/_all_docs", "/db/_changes", "/_up"} {
		b.Run(path[1:], func(b *testing.B) {
			c := &call{scratch: &scratch{}, w: &response{}}
			c.w.c = c
			b.ReportAllocs()
			for b.Loop() {
				c.route, c.dbName, c.docID, c.rest = nil, "", "", nil
				if err := c.parsePath(path, true); err != nil || !rt.route(c) {
					b.Fatal("no route")
				}
			}
		})
	}
}
