package httpapi

import (
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

// TestPasswordRulesThatDoNotCompile: they cannot be set (api.md section 20, row 37); from a file they refuse each new
// password.
func TestPasswordRulesThatDoNotCompile(t *testing.T) {
	const rules, user = "/_node/_local/_config/chttpd_auth/password_regexp", "/_users/org.couchdb.user:eve"
	const eve = `{"name":"eve","type":"user","roles":[],"password":"pear"}`
	follow(t, nodeAPI(t, nil), []visit{
		{"adm", "PUT", rules, `"[{\"(\", \"Open.\"}]"`, 400, ""},
		{"adm", "PUT", rules, `"nonsense("`, 400, ""},
		{"adm", "GET", rules, "", 404, ""},
		{"adm", "PUT", user, eve, 201, ""},
	})
	follow(t, nodeAPI(t, config.Values{"chttpd_auth": {"password_regexp": `["("]`}}), []visit{
		{"adm", "PUT", user, eve, 403, `{"error":"forbidden","reason":"Server cannot hash passwords at this time."}`},
	})
}

// TestRevisionOfNoDocument: a revision of a document that never was is a conflict, no
// matter what else the shard holds (api.md section 20, row 38).
func TestRevisionOfNoDocument(t *testing.T) {
	const conflict = `{"error":"conflict","reason":"Document update conflict."}`
	const rev = `{"_rev":"1-967a00dff5e02add41819138abb3284d"}`
	follow(t, nodeAPI(t, nil), []visit{
		{"adm", "PUT", "/db?q=1", "", 201, ""},
		{"adm", "PUT", "/db/a", rev, 409, conflict},
		{"adm", "PUT", "/db/other", `{}`, 201, ""},
		{"adm", "PUT", "/db/a", rev, 409, conflict},
		{"adm", "PUT", "/db/a?rev=1-967a00dff5e02add41819138abb3284d", `{}`, 409, conflict},
		{"adm", "POST", "/db/_bulk_docs", `{"docs":[{"_id":"a","_rev":"1-967a00dff5e02add41819138abb3284d"}]}`, 201, `[{"id":"a","error":"conflict","reason":"Document update conflict."}]`},
		{"adm", "DELETE", "/db/a?rev=1-967a00dff5e02add41819138abb3284d", "", 404, ""},
	})
}

// TestSettingsWithoutEffect: a client that sets what nothing reads is told (api.md section 20, row 39).
func TestSettingsWithoutEffect(t *testing.T) {
	a := nodeAPI(t, nil)
	for path, warned := range map[string]bool{
		"couchdb/uri_file": true, "mine/own": true, "httpd/port": true, "couchdb/max_document_size": false, "vhosts/other.example": false,
		"httpd/enable_cors": false, "cors:http:%2F%2Fa/origins": false,
	} {
		value := `"1000"`
		if strings.HasSuffix(path, "enable_cors") {
			value = `"false"`
		}
		w := apitest.Ask(t, a, "PUT /_node/_local/_config/"+path, value, asAdmin, asJSON)
		if w.Code != 200 || (w.Header().Get("Warning") != "") != warned {
			t.Errorf("%s: %d %s %v", path, w.Code, w.Body, w.Header())
		}
	}
}

// TestSameSite: a value that is none of the known ones is left out of the cookie.
func TestSameSite(t *testing.T) {
	a := nodeAPI(t, nil)
	for value, want := range map[string]string{"Strict": "SameSite=Strict", "LAX": "SameSite=Lax", "none": "SameSite=None", "sometimes": "", "": "", "strict ": "SameSite=Strict"} {
		if w := apitest.Ask(t, a, "PUT /_node/_local/_config/chttpd_auth/same_site", `"`+value+`"`, asAdmin, asJSON); w.Code != 200 {
			t.Fatalf("%q: %d %s", value, w.Code, w.Body)
		}
		w := apitest.Ask(t, a, "POST /_session", `{"name":"adm","password":"pass"}`, asJSON)
		cookie := w.Header().Get("Set-Cookie")
		if w.Code != 200 || !strings.HasSuffix(cookie, want) || want == "" && strings.Contains(cookie, "SameSite") {
			t.Errorf("%q: %d %s", value, w.Code, cookie)
		}
	}
}
