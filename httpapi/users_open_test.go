package httpapi

import (
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

// TestUsersOpenForSignUp has a database of users that any client may write to: strangers
// may sign up, and nothing else.
func TestUsersOpenForSignUp(t *testing.T) {
	a := nodeAPI(t, config.Values{"couchdb": {"users_db_security_editable": "true"}})
	const (
		admin = "Authorization: Basic YWRtOnBhc3M="
		bob   = "Authorization: Basic Ym9iOnB3" // bob:pw
		eve   = "Authorization: Basic ZXZlOnB3"
	)
	user := func(name, members string) string {
		return `{"_id":"org.couchdb.user:` + name + `","name":"` + name + `","type":"user","roles":[]` + members + `}`
	}
	hash := `,"password_scheme":"pbkdf2","salt":"aa","derived_key":"bb","iterations":`
	revision := `,"_rev":"9-ffffffffffffffffffffffffffffffff","_revisions":{"start":9,"ids":["ffffffffffffffffffffffffffffffff"]}`
	replicated := func(doc string) string { return `{"new_edits":false,"docs":[` + doc + `]}` }
	for _, c := range []struct {
		title, line, body, who string
		status                 int
		answer                 string // a part of it
	}{
		{"opened", "PUT /_users/_security", `{}`, admin, 200, ""},
		{"a stranger signs up", "PUT /_users/org.couchdb.user:bob", user("bob", `,"password":"pw"`), "", 201, ""},
		{"and another in bulk", "POST /_users/_bulk_docs", `{"docs":[` + user("eve", `,"password":"pw"`) + `]}`, "", 201, `"ok":true`},

		{"somebody's document, replicated", "POST /_users/_bulk_docs", replicated(user("bob", revision+hash+"10")), "", 201, `"forbidden"`},
		{"the same, alone", "PUT /_users/org.couchdb.user:bob?new_edits=false", user("bob", revision+hash+"10"), "", 403, `"forbidden"`},
		{"the same, deleted", "POST /_users/_bulk_docs", replicated(user("bob", revision+`,"_deleted":true`)), "", 201, `"forbidden"`},
		{"the same, by another user", "POST /_users/_bulk_docs", replicated(user("bob", revision+hash+"10")), eve, 201, `"error"`},
		{"bob is who he was", "GET /_session", "", bob, 200, `"name":"bob"`},
		{"an administrator replicates", "POST /_users/_bulk_docs", replicated(user("zoe", revision+hash+"10")), admin, 201, "[]"},

		{"a hash of a billion iterations", "PUT /_users/org.couchdb.user:mal", user("mal", hash+"1000000000"), "", 403, "Iteration count is too high"},
		{"in bulk", "POST /_users/_bulk_docs", `{"docs":[` + user("mal", hash+"999999999") + `]}`, "", 201, "Iteration count is too high"},
		{"one's own", "PUT /_users/org.couchdb.user:eve", user("eve", hash+"1000000000"), eve, 403, "Iteration count is too high"},
		{"another scheme", "PUT /_users/org.couchdb.user:mal", user("mal", strings.Replace(hash, "pbkdf2", "simple+pbkdf2", 1)+"1000000000"), "", 403, "Iteration count is too high"},
		{"what servers use", "PUT /_users/org.couchdb.user:may", user("may", hash+"600000"), "", 201, ""},
		{"an administrator's choice", "PUT /_users/org.couchdb.user:max", user("max", hash+"5000000"), admin, 201, ""},

		{"a local document", "PUT /_users/_local/x", `{}`, "", 401, "not a server admin"},
		{"as any document", "POST /_users", `{"_id":"_local/x"}`, "", 401, "not a server admin"},
		{"in bulk", "POST /_users/_bulk_docs", `{"docs":[{"_id":"_local/x"}]}`, "", 201, "not a server admin"},
		{"replicated", "POST /_users/_bulk_docs", replicated(`{"_id":"_local/x","_rev":"0-1"}`), "", 201, "not a server admin"},
		{"by a user", "POST /_users", `{"_id":"_local/x"}`, bob, 401, "not a server admin"},
		{"copied", "COPY /_users/org.couchdb.user:bob", "", bob, 401, "not a server admin"},
		{"by an administrator", "POST /_users", `{"_id":"_local/x","a":1}`, admin, 201, ""},
		{"read in bulk", "POST /_users/_bulk_get", `{"docs":[{"id":"_local/x"}]}`, "", 200, "not a server admin"},
		{"read", "GET /_users/_local/x", "", "", 401, "not a server admin"},
		{"read as one segment", "GET /_users/_local%2Fx", "", "", 401, "not a server admin"},
		{"by a user, as one segment", "GET /_users/_local%2Fx", "", bob, 401, "not a server admin"},
		{"by an administrator, as one segment", "GET /_users/_local%2Fx", "", admin, 200, `"a":1`},
		{"by an administrator in bulk", "POST /_users/_bulk_docs", `{"docs":[{"_id":"_local/y"}]}`, admin, 201, `"ok":true`},
	} {
		headers := []string{jsonBody, "Destination: _local/z"}
		if c.who != "" {
			headers = append(headers, c.who)
		}
		w := apitest.Ask(t, a, c.line, c.body, headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.answer) {
			t.Errorf("%s: %d %s", c.title, w.Code, w.Body)
		}
	}
}
