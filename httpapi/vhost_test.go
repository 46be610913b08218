package httpapi

import (
	"net/url"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

// askHosts returns what sends a request to a host and compares status and, unless want is empty, body.
func askHosts(t *testing.T, a *API) func(line, host, body string, status int, want string, headers ...string) {
	t.Helper()
	return func(line, host, body string, status int, want string, headers ...string) {
		t.Helper()
		r := apitest.Request(t, line, body, append(headers, "Content-Type: application/json"))
		r.Host = host
		if w := serve(a, r); w.Code != status || want != "" && w.Body.String() != want {
			t.Errorf("%s of %s: %d %q, want %d %q", line, host, w.Code, w.Body, status, want)
		}
	}
}

// TestVirtualHosts: the hosts of [vhosts] show what stands for them, as soon as they are set.
func TestVirtualHosts(t *testing.T) {
	a := nodeAPI(t, config.Values{"couchdb": {"default_security": "everyone"}})
	ask := askHosts(t, a)
	const home, app, config = "localhost:5984", "shop.example.org", "/_node/_local/_config/vhosts/"
	ask("PUT /shop?q=2", home, "", 201, "", asAdmin)
	ask("PUT /shop/a", home, `{"v":1}`, 201, "")
	ask("PUT /shop/_design/app", home, `{"rewrites":[{"from":"","to":"_show/where"},{"from":"api/:id","to":"../../:id"}],
		"shows":{"where":"function(d,r){return r.requested_path.join('>')+' '+r.headers['x-couchdb-vhost-path']}"}}`, 201, "", asAdmin)
	ask("GET /shop/a", app, "", 200, "")
	ask("PUT "+config+app, home, `"/shop/_design/app/_rewrite"`, 200, "\"\"\n", asAdmin)
	ask("GET /?q=1", app, "", 200, "?q=1 /?q=1")
	ask("GET /api/a?x=1", app, "", 200, "")
	ask("GET /api/a", "other.example.org", "", 404, "")
	ask("GET /shop/a", app, "", 404, "")
	ask("GET /_session", app, "", 200, "")
	ask("GET /_uuids", app, "", 200, "")
	ask("GET /_all_dbs", app, "", 404, "", asAdmin)
	ask("GET /api/a", home, "", 200, "", "X-Forwarded-Host: "+app)
	ask("DELETE "+config+app, home, "", 200, "", asAdmin)
	ask("GET /shop/a", app, "", 200, "")
	ask("PUT "+config+":db.example.org", home, `"/:db"`, 200, "", asAdmin)
	ask("PUT /b", app, `{}`, 201, "")
	ask("GET /b", app, "", 200, "")
	ask("GET /_design/app/_show/where?a=b", app, "", 200, "_design>app>_show>where?a=b /_design/app/_show/where?a=b")
	ask("GET /", app, "", 200, "")
	ask("GET /_utils/", app, "", 200, "")
}

// TestNamesOfVirtualHosts: a name of a host is one segment of a path, no matter what a
// client has written, and a client's own header about the path that it asked for does not
// count.
func TestNamesOfVirtualHosts(t *testing.T) {
	a := nodeAPI(t, config.Values{
		"couchdb": {"default_security": "everyone"}, "chttpd": {"decode_plus_to_space": "true"},
		"vhosts": {":db.one.example": "/:db", "*.all.example": "/*", ":id.doc.example": "/shop/:id", "fixed.example": "/shop/_design/app"},
	})
	ask := askHosts(t, a)
	const home = "localhost:5984"
	ask("PUT /shop?q=2", home, "", 201, "", asAdmin)
	ask("PUT /shop/a", home, `{"v":1}`, 201, "")
	ask("PUT /shop/_design/app", home, `{"rewrites":[{"from":"where","to":"_show/where"}],
		"shows":{"where":"function(d,r){return r.requested_path.join('>')+' '+r.headers['x-couchdb-vhost-path']}"}}`, 201, "", asAdmin)
	ask("GET /", "shop.one.example", "", 200, "")
	ask("GET /a", "shop.one.example", "", 200, "")
	ask("GET /", "a.doc.example", "", 200, "")
	for _, name := range []string{"shop%2fa", "shop%2Fa%3f", "%73hop", "shop/a", "shop/a?rev=", "shop?", "..%2fshop", "%2e%2e%2fshop", "shop#", "sh%op", "shop\xff", "shop%00"} {
		for _, suffix := range []string{".one.example", ".all.example"} {
			forwarded := "X-Forwarded-Host: " + name + suffix
			r := apitest.Request(t, "GET /", "", []string{asAdmin, forwarded})
			if w := serve(a, r); w.Code < 400 || w.Code >= 500 {
				t.Errorf("%s: %d %s", forwarded, w.Code, w.Body)
			}
		}
	}
	for _, id := range []string{"x%2fy", "x/y", "x?y=1", "x+y", "x%", "x#"} { // which documents may have
		host, escaped := "X-Forwarded-Host: "+id+".doc.example", url.PathEscape(id)
		ask("PUT /", home, `{}`, 201, "", asAdmin, host)
		ask("GET /shop/"+strings.ReplaceAll(escaped, "+", "%2B"), home, "", 200, "")
	}
	ask("GET /../shop/a", "shop.one.example", "", 404, "")
	ask("GET /../_all_dbs", "fixed.example", "", 404, "", asAdmin)

	const told = "X-Couchdb-Vhost-Path: /told/by?the=client"
	ask("GET /shop/_design/app/_show/where", home, "", 200, "shop>_design>app>_show>where undefined", told)
	ask("GET /shop/_design/app/_rewrite/where", home, "", 200, "shop>_design>app>_show>where undefined", told)
	ask("GET /_show/where", "fixed.example", "", 200, "_show>where /_show/where", told)
	ask("GET /_rewrite/where?x=1", "fixed.example", "", 200, "_rewrite>where?x=1 /_rewrite/where?x=1", told)
}
