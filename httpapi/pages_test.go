package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

const browser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// People get a page where programs get JSON, without anything that could be
// turned against them.
func TestPages(t *testing.T) {
	a := frontAPI(t, config.Values{"chttpd": {"enable_xframe_options": "false"}})
	strict := map[string]string{
		"Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Content-Security-Policy": "/^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/",
		"Cache-Control":           "private, must-revalidate", "Referrer-Policy": "no-referrer",
	}
	json := map[string]string{"Content-Type": "application/json", "Vary": "Accept", "Content-Security-Policy": "-"}
	for _, tc := range []struct {
		name, target string
		send         []string
		status       int
		headers      map[string]string
		want, never  string
	}{
		{"the root", "GET /", []string{browser, "X-Forwarded-Host: db.example.com"}, 200, strict, "http://db.example.com/_all_dbs", "<script"},
		{"the root in JSON", "GET /", []string{"Accept: */*"}, 200, json, `"couchdb":"Welcome"`, "<html"},
		{"a client that takes both", "GET /", []string{"Accept: application/json, text/html"}, 200, json, `"couchdb":"Welcome"`, "<html"},
		{"no Accept at all", "GET /", nil, 200, json, `"couchdb":"Welcome"`, "<html"},
		{"HTML refused", "GET /", []string{"Accept: text/html;q=0"}, 200, json, `"couchdb":"Welcome"`, "<html"},
		{"utils", "GET /_utils", nil, 301, map[string]string{"Location": "http://example.com/_utils/"}, "", ""},
		{"utils with its slash", "GET /_utils/", nil, 200, strict, "docs.couchdb.org", "<script"},
		{"its index", "GET /_utils/index.html", nil, 200, strict, "There is no console in this version", ""},
		{"what is not there", "GET /_utils/fauxton.js", nil, 404, nil, `{"error":"not_found","reason":"missing"}`, ""},
		{"another method", "DELETE /_utils/", nil, 401, nil, "", ""},
		{
			"the login page", "GET /_utils/session.html?return=/_all_dbs&reason=You%20are%20%3Cnot%3E", nil, 200, strict,
			"You are &lt;not&gt;", "<not>",
		},
		{"an address elsewhere", "GET /_utils/session.html?return=https://evil.example", nil, 200, strict, "next=%2F_utils%2F", "evil"},
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
