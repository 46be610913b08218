package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"divan/cluster/config"
)

// functions is a design document with a function of each kind.
const functions = `{
	"validate_doc_update": "function (n, o, u) { if (n.locked && u.roles.indexOf('_admin') < 0) { throw({unauthorized: 'admins only'}); } if (n.bad) { throw({forbidden: 'bad'}); } }",
	"shows": {
		"title": "function (doc, req) { return doc ? doc.title : 'none'; }",
		"headers": "function (doc, req) { return {json: {auth: req.headers.Authorization || null, cookie: req.cookie, own: req.headers['X-Own']}}; }",
		"split": "function (doc, req) { return {body: 'x', headers: {'X-Split': req.query.v}}; }",
		"policy": "function () { return {body: '<script></script>', headers: {'Content-Type': 'text/html', 'Content-Security-Policy': \"default-src *\"}}; }"},
	"updates": {
		"bad": "function (doc, req) { return [{_id: 'made', bad: true}, 'written']; }",
		"touch": "function (doc, req) { doc = doc || {_id: req.id}; doc.n = (doc.n || 0) + 1; return [doc, String(doc.n)]; }",
		"att": "function (doc, req) { return [{_id: 'att', _attachments: {a: {content_type: 'text/plain', data: 'aGVsbG8='}}}, 'ok']; }"},
	"rewrites": [{"from": "put/:id/:name", "to": "../../:id/:name", "method": "PUT"}, {"from": "*", "to": "../../*"}]}`

func TestFunctions(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(201, "PUT", "/db/_design/f", functions)
	s.text(201, "PUT", "/db/d", `{"title":"one"}`)

	res := s.do("GET", "/db/_design/f/_show/title/d", nil)
	etag := res.Header.Get("ETag")
	if res.StatusCode != http.StatusOK || etag == "" || res.Header.Get("Content-Security-Policy") != "sandbox" || res.Header.Get("Vary") != "Accept" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	if again := s.do("GET", "/db/_design/f/_show/title/d", nil, "If-None-Match: "+etag); again.StatusCode != http.StatusNotModified {
		t.Errorf("nothing has changed: %d", again.StatusCode)
	}
	s.text(201, "PUT", "/db/_design/other", "{}")
	for _, change := range []string{"?a=1", "/x"} {
		if again := s.do("GET", "/db/_design/f/_show/title/d"+change, nil, "If-None-Match: "+etag); again.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", change, again.StatusCode)
		}
	}
	if got := s.text(200, "GET", "/db/_design/f/_show/headers", nil, "X-Own: a", "Cookie: c=d"); got != `{"auth":null,"cookie":{},"own":"a"}`+"\n" {
		t.Errorf("what a function sees of the user: %s", got)
	}
	if res := s.do("GET", "/db/_design/f/_show/split?v=a%0d%0aSet-Cookie:%20x", nil); res.Header.Get("X-Split") != "" || res.Header.Get("Set-Cookie") != "" {
		t.Errorf("headers of a function: %v", res.Header)
	}
	if res := s.do("GET", "/db/_design/f/_show/policy", nil); !slices.Equal(res.Header["Content-Security-Policy"], []string{"sandbox", "default-src *"}) {
		t.Errorf("a function is out of the sandbox: %v", res.Header)
	}

	for i := range 3 {
		if got := s.text(201, "POST", "/db/_design/f/_update/touch/t", nil); got != fmt.Sprint(i+1) {
			t.Errorf("update %d: %s", i, got)
		}
	}
	s.text(403, "POST", "/db/_design/f/_update/bad", nil)
	s.text(404, "GET", "/db/made", nil)
	s.text(201, "POST", "/db/_design/f/_update/att", nil)
	if got := s.text(200, "GET", "/db/att/a", nil); got != "hello" {
		t.Errorf("an attachment of an update function: %s", got)
	}
	res = s.do("GET", "/db/_design/f/_update/touch", nil)
	if res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("an update by GET: %d", res.StatusCode)
	}

	large := strings.Repeat("content ", 100_000)
	s.text(201, "PUT", "/db/_design/f/_rewrite/put/new/file", large, "Content-Type: text/plain")
	if got := s.text(200, "GET", "/db/_design/f/_rewrite/new/file", nil); got != large {
		t.Errorf("%d bytes through a rewrite", len(got))
	}
	if res := s.do("HEAD", "/db/_design/f/_rewrite/d", nil); res.StatusCode != http.StatusOK || res.Header.Get("ETag") == "" {
		t.Errorf("HEAD through a rewrite: %d %v", res.StatusCode, res.Header)
	}
}

// What a function makes of its answer must be one that can be sent.
func TestAnswersOfFunctions(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(201, "PUT", "/db/_design/f", `{
		"views": {"v": {"map": "function (doc) { emit(doc._id, 1); }"}},
		"shows": {"s": "function (doc, req) { return JSON.parse(req.query.r); }"},
		"lists": {"l": "function (head, req) { start(JSON.parse(req.query.r)); send('x'); }"},
		"updates": {"u": "function (doc, req) { return [null, JSON.parse(req.query.r)]; }"},
		"rewrites": "function (req) { return JSON.parse(req.query.r); }"}`)
	const invalid = `{"error":"external_response_error","reason":"Invalid data from external server: `
	for _, c := range []struct {
		object string
		status int
		body   string
	}{
		{`{"code":199,"body":"x"}`, 500, invalid + `{<<\"code\">>,199}"}`},
		{`{"code":100,"body":"x"}`, 500, invalid + `{<<\"code\">>,100}"}`},
		{`{"code":0,"body":"x"}`, 500, invalid + `{<<\"code\">>,0}"}`},
		{`{"code":-1,"body":"x"}`, 500, invalid + `{<<\"code\">>,-1}"}`},
		{`{"code":1000,"body":"x"}`, 500, invalid + `{<<\"code\">>,1000}"}`},
		{`{"code":"200","body":"x"}`, 500, invalid},
		{`{"code":200.5,"body":"x"}`, 500, invalid},
		{`{"body":1}`, 500, invalid},
		{`{"base64":"?"}`, 500, invalid},
		{`{"headers":1}`, 500, invalid},
		{`{"stop":false}`, 500, invalid},
		{`{"other":1}`, 500, invalid},
		{`{"code":200,"body":"x"}`, 200, "x"},
		{`{"code":299,"body":"x"}`, 299, "x"},
		{`{"code":999,"body":"x"}`, 999, "x"},
		{`{"code":204,"body":"not sent"}`, 204, ""},
		{`{"code":304,"body":"not sent"}`, 304, ""},
		{`{"base64":"eA=="}`, 200, "x"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			res := s.do(method, "/db/_design/f/_show/s?r="+url.QueryEscape(c.object), nil)
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close() // read to its end
			if err != nil || res.StatusCode != c.status || method == "GET" && !strings.HasPrefix(string(body), c.body) || c.body == "" && len(body) > 0 {
				t.Errorf("%s of %s: %d %s, %v", method, c.object, res.StatusCode, body, err)
			}
		}
		// The connection is fit for another request, and the function for another call.
		if got := s.text(200, "GET", "/db/_design/f/_show/s?r="+url.QueryEscape(`{"body":"next"}`), nil); got != "next" {
			t.Errorf("after %s: %s", c.object, got)
		}
	}
	for _, path := range []string{"_list/l/v", "_update/u", "_rewrite/x"} {
		for _, code := range []string{"100", "199", "1000"} {
			method := "GET"
			if path == "_update/u" {
				method = "POST"
			}
			res := s.do(method, "/db/_design/f/"+path+"?r="+url.QueryEscape(`{"code":`+code+`,"body":"x"}`), nil)
			if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusInternalServerError {
				t.Errorf("%s with code %s: %d, %v", path, code, res.StatusCode, err)
			}
			_ = res.Body.Close() // read to its end
		}
	}
}

// Who may do what does not depend on the way: rules and functions act for the user.
func TestFunctionsActForTheUser(t *testing.T) {
	a := nodeAPI(t, config.Values{})
	const refused = `{"error":"unauthorized","reason":"You are not authorized to access this db."}`
	follow(t, a, []visit{
		{"adm", "PUT", "/open", "", 201, ""},
		{"adm", "PUT", "/open/_security", `{}`, 200, ""},
		{"adm", "PUT", "/shut", "", 201, ""},
		{"adm", "PUT", "/open/_design/f", functions, 201, ""},
		{"adm", "PUT", "/shut/_design/f", functions, 201, ""},
		{"", "GET", "/open/_design/f/_show/title", "", 200, ""},
		{"", "GET", "/shut/_design/f/_show/title", "", 401, refused},
		{"", "POST", "/shut/_design/f/_update/touch/x", "", 401, refused},
		{"", "GET", "/shut/_design/f/_rewrite/x", "", 401, refused},
		{"", "PUT", "/open/x", `{"locked":true}`, 401, `{"error":"unauthorized","reason":"admins only"}`},
		{"adm", "PUT", "/open/x", `{"locked":true}`, 201, ""},
		{"", "POST", "/open/_design/f/_update/touch/x", "", 401, `{"error":"unauthorized","reason":"admins only"}`},
		{"", "PUT", "/open/_design/f/_rewrite/put/_design%2Fg/x", "x", 401, ""},
		{"", "GET", "/open/_design/f/_rewrite/_security", "", 200, ""},
		{"", "PUT", "/open/_design/g", "{}", 401, ""},
	})
}
