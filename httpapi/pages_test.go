package httpapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

const browser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// Browsers get the console where programs get JSON, and nothing that could be turned against
// people.
func TestPages(t *testing.T) {
	a := frontAPI(t, config.Values{"chttpd": {"enable_xframe_options": "false"}})
	strict := func(policy string) map[string]string {
		return map[string]string{
			"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Content-Security-Policy": "/^default-src 'none'; " + policy + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/",
			"Referrer-Policy":         "no-referrer",
		}
	}
	page := strict("script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self'; connect-src 'self'; ")
	form := strict("style-src 'sha256-[^']+'; ")
	sent := map[string]string{"Location": "_utils/", "Vary": "Accept"}
	json := map[string]string{"Content-Type": "application/json", "Vary": "Accept", "Content-Security-Policy": "-"}
	for _, tc := range []struct {
		name, target string
		send         []string
		status       int
		headers      map[string]string
		want, never  string
	}{
		{"the root", "GET /", []string{browser, "X-Forwarded-Host: db.example.com"}, 302, sent, "", "Welcome"},
		{"the root in JSON", "GET /", []string{"Accept: */*"}, 200, json, `"couchdb":"Welcome"`, "<html"},
		{"a client that takes both", "GET /", []string{"Accept: application/json, text/html"}, 200, json, `"couchdb":"Welcome"`, "<html"},
		{"no Accept at all", "GET /", nil, 200, json, `"couchdb":"Welcome"`, "<html"},
		{"HTML refused", "GET /", []string{"Accept: text/html;q=0"}, 200, json, `"couchdb":"Welcome"`, "<html"},
		{"utils", "GET /_utils", nil, 301, map[string]string{"Location": "_utils/"}, "", ""},
		{"utils with its slash", "GET /_utils/", nil, 200, page, `<script type="module" src="main-`, "data-admins"},
		{"its index", "GET /_utils/index.html", nil, 200, page, `<script type="module" src="main-`, ""},
		{"licenses", "GET /_utils/licenses.txt", nil, 200, map[string]string{"Content-Encoding": "-", "Cache-Control": "no-cache"}, "Permission is hereby granted", ""},
		{"what is not there", "GET /_utils/fauxton.js", nil, 404, nil, `{"error":"not_found","reason":"missing"}`, ""},
		{"what is not there, below", "GET /_utils/a/b", nil, 404, nil, `{"error":"not_found","reason":"missing"}`, ""},
		{"another method", "DELETE /_utils/", nil, 405, nil, "", ""},
		{"the login form", "GET /_utils/session.html?return=/_all_dbs&reason=You%20are%20%3Cnot%3E", nil, 200, form, "You are &lt;not&gt;", "<not>"},
		{"an address elsewhere", "GET /_utils/session.html?return=https://evil.example", nil, 200, form, "next=%2F_utils%2F", "evil"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := apitest.Ask(t, a, tc.target, "", tc.send...)
			if w.Code != tc.status {
				t.Errorf("status %d, want %d: %s", w.Code, tc.status, w.Body)
			}
			for name, want := range tc.headers {
				checkHeader(t, w.Header(), name, want)
			}
			if style := regexp.MustCompile("(?s)<style>(.*)</style>").FindStringSubmatch(w.Body.String()); style != nil {
				sum := sha256.Sum256([]byte(style[1]))
				checkHeader(t, w.Header(), "Content-Security-Policy", "/"+regexp.QuoteMeta(base64.StdEncoding.EncodeToString(sum[:]))+"/")
			}
			if text := w.Body.String(); !strings.Contains(text, tc.want) || tc.never != "" && strings.Contains(text, tc.never) {
				t.Errorf("want %q and not %q in %s", tc.want, tc.never, text)
			}
		})
	}
}

// The files that the console names are there: compressed for those that take it, the same for others,
// for ever by their names, and not sent twice.
func TestConsoleFiles(t *testing.T) {
	a := frontAPI(t, nil)
	index := apitest.Ask(t, a, "GET /_utils/", "")
	names := regexp.MustCompile(`(?:src|href)="(main-[^"]+)"`).FindAllStringSubmatch(index.Body.String(), -1)
	if len(names) != 2 {
		t.Fatalf("the page names %q: %s", names, index.Body)
	}
	for _, m := range names {
		target := "/_utils/" + m[1]
		plain, packed := apitest.Ask(t, a, "GET "+target, ""), apitest.Ask(t, a, "GET "+target, "", "Accept-Encoding: gzip, br")
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(unpacked, plain.Body.Bytes()) || len(unpacked) == 0 {
			t.Errorf("%s: %d bytes, %d when it is unpacked: %v", m[1], plain.Body.Len(), len(unpacked), err)
		}
		for _, w := range []*httptest.ResponseRecorder{plain, packed} {
			checkHeader(t, w.Header(), "Cache-Control", "public, max-age=31536000, immutable")
			checkHeader(t, w.Header(), "X-Content-Type-Options", "nosniff")
			checkHeader(t, w.Header(), "Vary", "Accept-Encoding")
		}
		if head := apitest.Ask(t, a, "HEAD "+target, ""); head.Code != 200 || head.Body.Len() > 0 {
			t.Errorf("HEAD %s: %d, %d bytes", m[1], head.Code, head.Body.Len())
		}
	}
	for _, target := range []string{"GET /_utils/", "GET /_utils/" + names[0][1]} {
		var etag string
		for name, values := range apitest.Ask(t, a, target, "").Header() {
			if strings.EqualFold(name, "ETag") {
				etag = values[0]
			}
		}
		if w := apitest.Ask(t, a, target, "", "If-None-Match: "+etag); w.Code != 304 || w.Body.Len() > 0 {
			t.Errorf("%s with its ETag: %d %s", target, w.Code, w.Body)
		}
	}
}

// The form of the login page logs in, goes where the person wanted to go, and
// comes back when the password is wrong; also where everything needs an account.
func TestLoginPage(t *testing.T) {
	a := nodeAPI(t, config.Values{"chttpd": {"require_valid_user": "true"}})
	w := apitest.Ask(t, a, "GET /_utils/session.html?return=/_all_dbs", "")
	action := regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch(w.Body.String())
	if w.Code != 200 || action == nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	target := "POST " + strings.ReplaceAll(action[1], "&amp;", "&")
	const form = "Content-Type: application/x-www-form-urlencoded"
	if w := apitest.Ask(t, a, target, "name=adm&password=pass", form); w.Code != 302 || w.Header().Get("Location") != "http://example.com/_all_dbs" {
		t.Errorf("%d %q %s", w.Code, w.Header().Get("Location"), w.Body)
	}
	w = apitest.Ask(t, a, target, "name=adm&password=pear", form)
	again, err := url.Parse(w.Header().Get("Location"))
	if w.Code != 302 || err != nil || again.Path != "/_utils/session.html" || again.Query().Get("return") != "/_all_dbs" ||
		again.Query().Get("reason") != "Name or password is incorrect." {
		t.Errorf("%d %v %v", w.Code, again, err)
	}
}

// Paths that name nothing say what is missing.
func TestNothingThere(t *testing.T) {
	a := nodeAPI(t, nil)
	ask := func(target string, status int, want string) {
		t.Helper()
		w := apitest.Ask(t, a, target, "", "Authorization: Basic YWRtOnBhc3M=")
		if w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %d %s", target, w.Code, w.Body, status, want)
		}
	}
	ask("PUT /pond", 201, "")
	ask("GET /lake/_design/d/_search/i?q=x", 404, "Database does not exist.")
	ask("GET /_nothing", 404, "Database does not exist.")
	ask("GET /pond/_design/d/search/i", 404, "") // an attachment
}
