package httpapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/storage/doc"
	"divan/storage/fault"
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
			w := ask(t, a, tc.method+" "+tc.target, "", tc.send...)
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

func TestErrorsByKind(t *testing.T) {
	a := frontAPI(t, nil)
	c, _ := testCall(t, a, "GET /_up", "")
	for _, tc := range []struct {
		err    error
		status int
		name   string
		reason string
	}{
		{fault.New(fault.NotFound, "missing"), 404, "not_found", "missing"},
		{fault.New(fault.Conflict, "Document update conflict."), 409, "conflict", "Document update conflict."},
		{fault.New(fault.MissingRev, "missing_rev"), 409, "not_found", "missing_rev"},
		{fault.New(fault.Exists, "x"), 412, "file_exists", "x"},
		{fault.New(fault.Unavailable, "x"), 503, "service unavailable", "x"},
		{&fault.Error{Kind: fault.InvalidSelector, Code: "invalid_operator", Reason: "x"}, 400, "invalid_operator", "x"},
		{fmt.Errorf("deeper: %w", fault.New(fault.Gone, "x")), 410, "gone", "x"},
		{&methodError{allow: "GET,HEAD"}, 405, "method_not_allowed", "Only GET,HEAD allowed"},
		{errors.New("secret text"), 500, "internal_server_error", ""},
		{fault.New(fault.Internal, "secret text"), 500, "internal_server_error", ""},
		{fault.New(fault.Corruption, "secret text"), 500, "internal_server_error", ""},
	} {
		f := c.describe(tc.err)
		if f.status != tc.status || f.name != tc.name || (tc.reason != "" && f.reason != tc.reason) {
			t.Errorf("%v: got %+v", tc.err, f)
		}
		if strings.Contains(string(f.appendJSON(nil)), "secret") {
			t.Errorf("%v: told to the client: %s", tc.err, f.appendJSON(nil))
		}
		if (tc.status == 500) != (f.ref != "") {
			t.Errorf("%v: ref %q", tc.err, f.ref)
		}
	}
	for k := fault.Internal; k <= fault.Purged; k++ {
		if w := wireOf(k); w.status < 400 || w.status > 599 || w.name == "" {
			t.Errorf("kind %d has no place in the table: %+v", k, w)
		}
	}
}

func TestPanicIsA500(t *testing.T) {
	a := frontAPI(t, nil)
	a.router = newRouter([]route{{table: serverTable, path: "/_up", methods: methods{get: func(*call) error { panic("boom") }}}})
	w := ask(t, a, "GET /_up", "", "X-Couch-Request-ID: abc")
	if w.Code != 500 || !strings.Contains(w.Body.String(), "abc") || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if a.stats.panics.n.Load() != 1 {
		t.Error("the panic was not counted")
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBodies(t *testing.T) {
	a := frontAPI(t, config.Values{"chttpd": {"max_http_request_size": "200"}})
	long := strings.Repeat("x", 201)
	for _, tc := range []struct {
		name, body string
		headers    []string
		want, fail string
	}{
		{"plain", `{"a":1}`, nil, `{"a":1}`, ""},
		{"identity", `{"a":1}`, []string{"Content-Encoding: identity"}, `{"a":1}`, ""},
		{"gzip", gzipped(t, `{"a":1}`), []string{"Content-Encoding: gzip"}, `{"a":1}`, ""},
		{"no gzip", `{"a":1}`, []string{"Content-Encoding: gzip"}, "", "Request body is not properly gzipped."},
		{"cut gzip", gzipped(t, `{"a":1}`)[:20], []string{"Content-Encoding: gzip"}, "", "Request body is not properly gzipped."},
		{"a bomb", gzipped(t, long), []string{"Content-Encoding: gzip"}, "", "the request entity is too large"},
		{"deflate", `x`, []string{"Content-Encoding: deflate"}, "", "deflate is not a supported content encoding."},
		{"empty", "", []string{"Content-Length: 0"}, "", ""},
		{"none", "", nil, "", "Missing request body"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, _ := testCall(t, a, "POST /_dbs_info", tc.body, tc.headers...)
			if tc.body == "" {
				c.r.ContentLength = 0
			}
			got, err := c.readJSON()
			if fault.Reason(err) != tc.fail || string(got) != tc.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if w := ask(t, a, "POST /_dbs_info", long); w.Code != 413 || w.Header().Get("Connection") != "close" {
		t.Errorf("announced too long: got %d %v", w.Code, w.Header())
	}
	c, _ := testCall(t, a, "POST /_dbs_info", "x")
	c.r.ContentLength, c.r.Body = -1, io.NopCloser(strings.NewReader(long))
	if _, err := c.readJSON(); !fault.Is(err, fault.RequestTooLarge) {
		t.Errorf("chunked and too long: %v", err)
	}
}

func TestStreams(t *testing.T) {
	a := frontAPI(t, config.Values{"chttpd": {"allow_jsonp": "true"}})
	big := strings.Repeat("0123456789", streamBuffer/10+1)
	late := fault.New(fault.BadRequest, "too late")
	for _, tc := range []struct {
		name, target string
		serve        func(s *streamWriter) error
		status       int
		body         string
	}{
		{"complete", "/_up", func(s *streamWriter) error { _, err := s.WriteString("ab"); return errors.Join(err, s.Close()) }, 200, "ab"},
		{"error before the first byte", "/_up", func(s *streamWriter) error { _, _ = s.WriteString("ab"); return late }, 400, `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"error after it", "/_up", func(s *streamWriter) error {
			_, err := s.WriteString("ab")
			return errors.Join(err, s.Flush(), late)
		}, 200, "ab\n\n" + `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"error after a full buffer", "/_up", func(s *streamWriter) error { _, err := s.WriteString(big); return errors.Join(err, late) }, 200, big + "\n\n" + `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"buffered", "/_up?buffer_response=true", func(s *streamWriter) error { _, err := s.WriteString(big); return errors.Join(err, late) }, 400, `{"error":"bad_request","reason":"too late"}` + "\n"},
		{"callback", "/_up?callback=cb", func(s *streamWriter) error { _, err := s.WriteString("[]"); return errors.Join(err, s.Close()) }, 200, "/* CouchDB */cb([]);"},
		{"callback in an object", "/_up?callback=a.b_1[0]", func(s *streamWriter) error { _, err := s.WriteString("[]"); return errors.Join(err, s.Close()) }, 200, "/* CouchDB */a.b_1[0]([]);"},
		{"callback that is a script", "/_up?callback=alert(1)%2F%2F", func(s *streamWriter) error { return s.Close() }, 400, `{"error":"bad_request","reason":"invalid_callback"}` + "\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a.router = newRouter([]route{{table: serverTable, path: "/_up", methods: methods{get: func(c *call) error {
				return tc.serve(c.stream(""))
			}}}})
			w := ask(t, a, "GET "+tc.target, "")
			if w.Code != tc.status || w.Body.String() != tc.body {
				t.Errorf("got %d %.80q, want %d %.80q", w.Code, w.Body, tc.status, tc.body)
			}
		})
	}
}

func TestStreamOfHeadStops(t *testing.T) {
	a := frontAPI(t, nil)
	writes := 0
	a.router = newRouter([]route{{table: serverTable, path: "/_up", methods: methods{get: func(c *call) error {
		s := c.stream("")
		for range 1000 {
			writes++
			if _, err := s.WriteString(strings.Repeat("x", 1000)); err != nil {
				return err
			}
		}
		return s.Close()
	}}}})
	w := ask(t, a, "HEAD /_up", "")
	if w.Code != 200 || w.Body.Len() != 0 || writes > 100 {
		t.Errorf("got %d, %d bytes after %d writes", w.Code, w.Body.Len(), writes)
	}
}

func TestCORS(t *testing.T) {
	const own = "http://app.example.com"
	a := frontAPI(t, config.Values{
		"chttpd": {"enable_cors": "true"}, "cors": {"origins": own + ", http://b"}, "cors:other.host": {"origins": "*", "credentials": "true"},
	})
	exposed := "content-type, cache-control, accept-ranges, etag, server, x-couch-request-id, x-couch-update-newrev, x-couchdb-body-time"
	for _, tc := range []struct {
		name, method string
		headers      []string
		status       int
		want         map[string]string
	}{
		{"own origin", "GET", []string{"Origin: " + own}, 200, map[string]string{corsOrigin: own, corsExpose: exposed, corsCredentials: "-", "Vary": "Origin"}},
		{"in capitals", "GET", []string{"Origin: HTTP://App.example.com"}, 200, map[string]string{corsOrigin: own}},
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
		{"of another origin", "OPTIONS", []string{"Origin: http://c", "Access-Control-Request-Method: GET"}, 405, map[string]string{corsOrigin: "-"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := ask(t, a, tc.method+" /_up", "", tc.headers...)
			if w.Code != tc.status {
				t.Errorf("status %d, want %d", w.Code, tc.status)
			}
			for name, want := range tc.want {
				checkHeader(t, w.Header(), name, want)
			}
		})
	}
	c, w := testCall(t, a, "GET /_up", "", "Origin: http://anywhere")
	c.r.Host = "other.host:5984"
	if err := c.sendOK(200); err != nil {
		t.Fatal(err)
	}
	checkHeader(t, w.Header(), corsOrigin, "http://anywhere")
	checkHeader(t, w.Header(), corsCredentials, "true")
}

func TestUUIDs(t *testing.T) {
	for _, algorithm := range []string{"sequential", "random", "utc_random", "utc_id", "uuid_v7"} {
		a := frontAPI(t, config.Values{"uuids": {"algorithm": algorithm, "utc_id_suffix": "-x"}})
		w := ask(t, a, "GET /_uuids?count=1000", "")
		if w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" {
			t.Fatalf("%s: %d %v", algorithm, w.Code, w.Header())
		}
		seen := map[string]bool{}
		last := ""
		list := valueAt(bytes.TrimSpace(w.Body.Bytes()), "uuids")
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

func TestUUIDFormats(t *testing.T) {
	u := [16]byte{0x01, 0x95, 0x2f, 0xd8, 0x36, 0x5a, 0x77, 0x12, 0x80, 0, 0, 0, 0, 0, 0, 1}
	for format, want := range map[string]string{
		"base_16": "01952fd8365a77128000000000000001", "": "01952fd8365a77128000000000000001",
		"rfc9562": "01952fd8-365a-7712-8000-000000000001",
	} {
		if got := formatUUID(u, format); got != want {
			t.Errorf("%s: %s", format, got)
		}
	}
	if low, high := formatUUID([16]byte{15: 1}, "base_36"), formatUUID(u, "base_36"); len(low) != 25 || len(high) != 25 || low >= high {
		t.Errorf("base_36: %s, %s", low, high)
	}
}
