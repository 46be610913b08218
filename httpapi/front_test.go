package httpapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/storage/doc"
)

func TestHeaders(t *testing.T) {
	a := frontAPI(t, nil)
	for _, tc := range []struct {
		name, method, target string
		send                 []string
		status               int
		want                 map[string]string // a value in // is a regular expression, "-" means absent
	}{
		{"plain", "GET", "/_up", nil, 200, map[string]string{
			"Content-Type": "application/json", "Cache-Control": "must-revalidate", "Content-Length": "27",
			"Server": "/^CouchDB\\/3/", "X-Couch-Request-ID": "/^[0-9a-f]{10}$/", "X-CouchDB-Body-Time": "0",
		}},
		{"head", "HEAD", "/_up", nil, 200, map[string]string{"Content-Length": "27", "Content-Type": "application/json"}},
		{"request id", "GET", "/_up", []string{"X-Couch-Request-ID: my-id_42"}, 200, map[string]string{"X-Couch-Request-ID": "my-id_42"}},
		{"of 36", "GET", "/_up", []string{"X-Couch-Request-ID: " + strings.Repeat("a", 36)}, 200, map[string]string{"X-Couch-Request-ID": strings.Repeat("a", 36)}},
		{"of 37", "GET", "/_up", []string{"X-Couch-Request-ID: " + strings.Repeat("z", 37)}, 200, map[string]string{"X-Couch-Request-ID": "/^[0-9a-f]{10}$/"}},
		{"with a dot", "GET", "/_up", []string{"X-Couch-Request-ID: not.allowed"}, 200, map[string]string{"X-Couch-Request-ID": "/^[0-9a-f]{10}$/"}},
		{"text", "GET", "/_up", []string{"Accept: text/plain"}, 200, map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
		{"text or anything", "GET", "/_up", []string{"Accept: text/plain, */*"}, 200, map[string]string{"Content-Type": "application/json"}},
		{"text but no JSON", "GET", "/_up", []string{"Accept: application/json;q=0, text/*"}, 200, map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
		{"an image", "GET", "/_up", []string{"Accept: image/png"}, 200, map[string]string{"Content-Type": "application/json"}},
		{"minimal", "GET", "/_up", []string{"Prefer: return=minimal"}, 200, map[string]string{
			"X-Couch-Request-ID": "-", "X-CouchDB-Body-Time": "-", "Cache-Control": "must-revalidate", "Server": "/CouchDB/",
		}},
		{"405", "OPTIONS", "/_up", nil, 405, map[string]string{"Allow": "GET,HEAD", "Content-Type": "application/json"}},
		{"override", "POST", "/_up", []string{"X-HTTP-Method-Override: GET"}, 200, nil},
		{"override by PUT", "PUT", "/_up", []string{"X-HTTP-Method-Override: GET"}, 405, nil},
		{"override by FETCH", "POST", "/_up", []string{"X-HTTP-Method-Override: FETCH"}, 405, nil},
		{"escape in the query", "GET", "/_up?a=%q", nil, 400, nil},
		{"challenge", "GET", "/_all_dbs", []string{"X-CouchDB-WWW-Authenticate: Cookie"}, 401, map[string]string{"WWW-Authenticate": "Cookie"}},
		{"no challenge", "GET", "/_all_dbs", nil, 401, map[string]string{"WWW-Authenticate": "-"}},
		{"browser", "GET", "/_active_tasks?x=y", []string{"Accept: text/html", "Host: example.com"}, 302, map[string]string{
			"Location": "http://example.com/_utils/session.html?return=%2F_active_tasks&reason=You%20are%20not%20a%20server%20admin.",
		}},
		{"browser behind a proxy", "GET", "/_all_dbs", []string{"Accept: text/html", "X-Forwarded-Host: db.example.com", "X-Forwarded-Proto: https"}, 302, map[string]string{
			"Location": "https://db.example.com/_utils/session.html?return=%2F_all_dbs&reason=You%20are%20not%20a%20server%20admin.",
		}},
		{"browser that takes JSON", "GET", "/_all_dbs", []string{"Accept: text/html, application/json"}, 401, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := apitest.Ask(t, a, tc.method+" "+tc.target, "", tc.send...)
			if w.Code != tc.status {
				t.Errorf("status %d, want %d: %s", w.Code, tc.status, w.Body)
			}
			for name, want := range tc.want {
				checkHeader(t, w.Header(), name, want)
			}
		})
	}
}

// checkHeader compares a header as it is spelled on the wire.
func checkHeader(t *testing.T, h http.Header, name, want string) {
	t.Helper()
	got := "-"
	for k, v := range h {
		if strings.EqualFold(k, name) && len(v) > 0 {
			got = v[0]
		}
	}
	if pattern, ok := strings.CutPrefix(want, "/"); ok && strings.HasSuffix(want, "/") {
		if !regexp.MustCompile(strings.TrimSuffix(pattern, "/")).MatchString(got) {
			t.Errorf("%s: %q does not match %s", name, got, want)
		}
	} else if got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func TestCORS(t *testing.T) {
	const (
		corsOrigin      = "Access-Control-Allow-Origin"
		corsCredentials = "Access-Control-Allow-Credentials"
		corsMethods     = "Access-Control-Allow-Methods"
		corsHeaders     = "Access-Control-Allow-Headers"
		corsMaxAge      = "Access-Control-Max-Age"
		corsExpose      = "Access-Control-Expose-Headers"
	)
	const own = "http://app.example.com"
	a := frontAPI(t, config.Values{
		"chttpd": {"enable_cors": "true"}, "cors": {"origins": own + ", http://b"}, "cors:other.host": {"origins": "*", "credentials": "true", "exposed_headers": "ETag, X-Mine"},
	})
	exposed := "content-type, cache-control, accept-ranges, etag, server, x-couch-request-id, x-couch-update-newrev, x-couchdb-body-time"
	for _, tc := range []struct {
		name, method string
		headers      []string
		status       int
		want         map[string]string
	}{
		{"own origin", "GET", []string{"Origin: " + own}, 200, map[string]string{corsOrigin: own, corsExpose: exposed, corsCredentials: "-", "Vary": "Origin"}},
		{"in capitals", "GET", []string{"Origin: HTTP://App.example.com"}, 200, map[string]string{corsOrigin: "HTTP://App.example.com"}},
		{"another", "GET", []string{"Origin: http://c"}, 200, map[string]string{corsOrigin: "-", corsExpose: "-"}},
		{"none", "GET", nil, 200, map[string]string{corsOrigin: "-"}},
		{"preflight", "OPTIONS", []string{"Origin: " + own, "Access-Control-Request-Method: GET"}, 204, map[string]string{
			corsOrigin: own, corsMethods: "CONNECT, COPY, DELETE, GET, HEAD, OPTIONS, POST, PUT, TRACE", corsMaxAge: "600",
			corsHeaders: "", corsExpose: "-", "Content-Length": "0",
		}},
		{"preflight with headers", "OPTIONS", []string{"Origin: " + own, "Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: Content-Type, If-Match"}, 204, map[string]string{corsHeaders: "Content-Type, If-Match"}},
		{"a header that is not allowed", "OPTIONS", []string{"Origin: " + own, "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: X-Secret"}, 405, map[string]string{corsOrigin: own, corsExpose: exposed, corsMethods: "-"}},
		{"a method that is not allowed", "OPTIONS", []string{"Origin: " + own, "Access-Control-Request-Method: PATCH"}, 405, map[string]string{corsOrigin: own}},
		{"without a method", "OPTIONS", []string{"Origin: " + own}, 405, map[string]string{corsOrigin: own}},
		{"preflight in capitals", "OPTIONS", []string{"Origin: HTTP://App.example.com", "Access-Control-Request-Method: GET"}, 405, map[string]string{
			corsOrigin: "HTTP://App.example.com", corsMethods: "-",
		}},
		{"of another origin", "OPTIONS", []string{"Origin: http://c", "Access-Control-Request-Method: GET"}, 405, map[string]string{corsOrigin: "-"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := apitest.Ask(t, a, tc.method+" /_up", "", tc.headers...)
			if w.Code != tc.status {
				t.Errorf("status %d, want %d", w.Code, tc.status)
			}
			for name, want := range tc.want {
				checkHeader(t, w.Header(), name, want)
			}
		})
	}
	r, w := apitest.Request(t, "GET /_up", "", []string{"Origin: http://AnyWhere"}), httptest.NewRecorder()
	r.Host = "other.host:5984"
	a.ServeHTTP(w, r)
	checkHeader(t, w.Header(), corsOrigin, "http://AnyWhere")
	checkHeader(t, w.Header(), corsExpose, "content-type, cache-control, etag, x-mine")
	checkHeader(t, w.Header(), corsCredentials, "true")
}

func TestUUIDs(t *testing.T) {
	for _, algorithm := range []string{"sequential", "random", "utc_random", "utc_id", "uuid_v7"} {
		a := frontAPI(t, config.Values{"uuids": {"algorithm": algorithm, "utc_id_suffix": "-x"}})
		w := apitest.Ask(t, a, "GET /_uuids?count=1000", "")
		if w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" {
			t.Fatalf("%s: %d %v", algorithm, w.Code, w.Header())
		}
		seen := map[string]bool{}
		last := ""
		list := doc.Lookup(bytes.TrimSpace(w.Body.Bytes()), "uuids")
		err := doc.EachElement(list, func(value []byte) error {
			id, _ := doc.Unquote(value)
			want := regexp.MustCompile(`^[0-9a-f]{32}$`)
			if algorithm == "utc_id" {
				want = regexp.MustCompile(`^[0-9a-f]{14}-x$`)
			}
			if !want.MatchString(id) || seen[id] {
				t.Fatalf("%s: %q", algorithm, id)
			}
			if algorithm == "utc_id" && id <= last {
				t.Fatalf("%s: %q after %q", algorithm, id, last)
			}
			seen[id], last = true, id
			return nil
		})
		if err != nil || len(seen) != 1000 {
			t.Errorf("%s: %d ids, %v", algorithm, len(seen), err)
		}
	}
}
