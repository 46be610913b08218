package node

import (
	"strings"
	"testing"
)

const (
	authDesign = "/_design/_auth"
	robot      = `{"name":"r2","type":"robot","roles":[],"password":"beep"}`
	robotID    = "/org.couchdb.user:r2"
)

// A database of accounts has the design document with its rules when it is made and
// when it becomes one; others have none.
func TestAccountDatabasesHaveRules(t *testing.T) {
	h := start(t, inMemory(t))
	has := func(db string) {
		t.Helper()
		eventually(t, db+" has its rules", func() bool { return strings.HasPrefix(h.ask("GET", db+authDesign, ""), "200 ") })
	}
	has("/_users")
	h.want("GET", "/_users"+authDesign, "", `200 {"_id":"_design/_auth","_rev":"1-`)

	h.want("PUT", "/people", "", "201")
	h.want("PUT", "/people"+robotID, robot, "201") // it is no database of accounts yet
	h.set("chttpd_auth", "authentication_db", "people")
	has("/people")
	h.want("PUT", "/people/org.couchdb.user:r3", robot, `403 {"error":"forbidden","reason":"doc.type must be user"`)

	h.set("chttpd_auth", "authentication_db", "staff")
	h.want("PUT", "/staff", "", "201")
	h.want("PUT", "/staff"+robotID, robot, "403") // whether the document is there yet or not
	has("/staff")
	h.want("PUT", "/pond", "", "201")
	h.want("GET", "/pond"+authDesign, "", `404 {"error":"not_found","reason":"missing"`)
}

// An administrator may change the rules; passwords are hashed all the same, and roles
// of the server are not believed. Without a document the rules are the usual ones.
func TestRulesOfAccountsMayChange(t *testing.T) {
	dir := t.TempDir()
	h := start(t, onDisk(dir))
	eventually(t, "the rules are there", func() bool { return strings.HasPrefix(h.ask("GET", "/_users"+authDesign, ""), "200 ") })
	h.want("PUT", "/_users"+robotID, robot, "403")
	_, rest, _ := strings.Cut(h.ask("GET", "/_users"+authDesign, ""), `"_rev":"`)
	rev, _, _ := strings.Cut(rest, `"`)
	answer := h.ask("PUT", "/_users"+authDesign, `{"_rev":"`+rev+`","validate_doc_update":"function (d) { if (d.type === 'person') { throw({forbidden: 'no persons'}); } }"}`)
	rev = revIn(t, strings.TrimSpace(answer))
	h.want("PUT", "/_users"+robotID, robot, "201")
	h.want("PUT", "/_users/org.couchdb.user:p", `{"name":"p","type":"person"}`, `403 {"error":"forbidden","reason":"no persons"`)
	if got := h.ask("GET", "/_users"+robotID, ""); strings.Contains(got, "beep") || !strings.Contains(got, `"derived_key":`) {
		t.Errorf("stored as it came: %s", got)
	}
	h.want("PUT", "/_users/org.couchdb.user:boss", `{"name":"boss","type":"user","roles":["_admin","cook"],"password":"p"}`, "201")
	if got := h.ask("POST", "/_session", `{"name":"boss","password":"p"}`); !strings.Contains(got, `"roles":["cook"]`) {
		t.Errorf("a role of the server: %s", got)
	}

	h.want("DELETE", "/_users"+authDesign+"?rev="+rev, "", "200")
	h.want("PUT", "/_users/org.couchdb.user:r4", robot, `403 {"error":"forbidden","reason":"doc.type must be user"`)
	h.end()
	h = start(t, onDisk(dir))
	h.set("chttpd_auth", "authentication_db", "staff")
	h.want("PUT", "/staff", "", "201")
	eventually(t, "the next one has its rules", func() bool { return strings.HasPrefix(h.ask("GET", "/staff"+authDesign, ""), "200 ") })
	h.want("GET", "/_users"+authDesign, "", `404 {"error":"not_found","reason":"deleted"`)
	h.want("PUT", "/_users/org.couchdb.user:r4", robot, `403`)
}
