package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"divan/replicator/ownership"
)

const perUser = "DIVAN_COUCH_PERUSER__ENABLE=true"

// account is the document of one.
func account(name string) string {
	return fmt.Sprintf(`{"_id":"org.couchdb.user:%[1]s","name":%[1]q,"password":"pw","roles":[],"type":"user"}`, name)
}

// setting changes one of [couch_peruser].
func (h *home) setting(key, value string) {
	h.town.t.Helper()
	h.want("PUT", "/_node/_local/_config/couch_peruser/"+key, fmt.Sprintf("%q", value), "200")
}

// owns is a security object that gives an account its database.
func owns(name string) string {
	return fmt.Sprintf(`200 {"members":{"roles":["_admin"],"names":[%[1]q]},"admins":{"roles":["_admin"],"names":[%[1]q]}}`, name)
}

const ownedByNobody = `200 {"members":{"roles":["_admin"],"names":[]},"admins":{"roles":["_admin"],"names":[]}}`

// A database comes with each account, however it is written, and is its own; what becomes of
// it when the account goes is a setting.
func TestPerUser(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone(perUser)
		h.want("PUT", "/_users/org.couchdb.user:ann", account("ann"), "201")
		h.soon("GET", "/userdb-616e6e/_security", "", owns("ann"))
		if got := h.as("ann", "PUT", "/userdb-616e6e/note", "{}"); !strings.HasPrefix(got, "201") {
			w.t.Error(got)
		}
		h.want("POST", "/_users/_bulk_docs", `{"docs":[`+account("bob")+`]}`, "201")
		h.want("POST", "/_users/_bulk_docs", `{"new_edits":false,"docs":[`+strings.Replace(account("eve"), `{`, `{"_rev":"1-abc",`, 1)+`]}`, "201")
		h.want("PUT", "/more", "", "201")
		h.want("PUT", "/more/org.couchdb.user:kim", account("kim"), "201")
		h.want("POST", "/_replicate", `{`+h.sides("more", "_users")+`}`, "200")
		for name, db := range map[string]string{"bob": "userdb-626f62", "eve": "userdb-657665", "kim": "userdb-6b696d"} {
			h.soon("GET", "/"+db+"/_security", "", owns(name))
		}
		if got := h.as("ann", "GET", "/userdb-626f62", ""); !strings.HasPrefix(got, "403") {
			w.t.Error(got)
		}

		// Without an account the database stays, with one again it is given back.
		h.want("PUT", "/userdb-616e6e/_security", `{"admins":{"names":["zoe","ann"]},"members":{"names":["ann"],"roles":["r"]}}`, "200")
		h.want("DELETE", "/_users/org.couchdb.user:ann?rev="+h.revOf("/_users/org.couchdb.user:ann"), "", "200")
		h.soon("GET", "/userdb-616e6e/_security", "", `200 {"admins":{"names":["zoe"]},"members":{"names":[],"roles":["r"]}}`)
		h.want("PUT", "/_users/org.couchdb.user:ann", account("ann"), "201")
		h.soon("GET", "/userdb-616e6e/_security", "", `200 {"admins":{"names":["ann","zoe"]},"members":{"names":["ann"],"roles":["r"]}}`)
		h.want("GET", "/userdb-616e6e/note", "", "200")

		h.setting("delete_dbs", "true")
		h.want("DELETE", "/_users/org.couchdb.user:bob?rev="+h.revOf("/_users/org.couchdb.user:bob"), "", "200")
		h.soon("GET", "/userdb-626f62", "", "404")
		h.setting("q", "4")
		h.want("PUT", "/_users/org.couchdb.user:bob", account("bob"), "201")
		h.soon("GET", "/userdb-626f62/_security", "", owns("bob"))
		if got := h.ask("GET", "/userdb-626f62", ""); !strings.Contains(got, `"cluster":{"q":4,`) {
			w.t.Error(got)
		}
		h.setting("database_prefix", "mine/")
		h.soon("GET", "/mine%2f626f62/_security", "", owns("bob"))
		h.want("GET", "/userdb-626f62", "", "200")
		h.want("PUT", "/_node/_local/_config/couch_peruser/database_prefix", `"Mine-"`, "400")
	})
}

// revOf returns the revision of a document.
func (h *home) revOf(path string) string {
	h.town.t.Helper()
	_, rev, _ := strings.Cut(h.ask("GET", path, ""), `"_rev":"`)
	rev, _, _ = strings.Cut(rev, `"`)
	return rev
}

// Accounts that are there when this is enabled get their databases, at run time and at a
// start; one whose name is too long holds up no other.
func TestPerUserOfBefore(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		long := strings.Repeat("x", 200)
		for _, name := range []string{"ann", long, "zoe"} {
			h.want("PUT", "/_users/org.couchdb.user:"+name, account(name), "201")
		}
		<-time.After(10 * time.Second)
		h.want("GET", "/userdb-616e6e", "", "404")
		h.setting("enable", "true")
		h.soon("GET", "/userdb-616e6e/_security", "", owns("ann"))
		h.soon("GET", "/userdb-7a6f65/_security", "", owns("zoe"))
		if got := h.ask("GET", "/_node/_local/_prometheus", ""); !strings.Contains(got, "\ncouchdb_peruser_failures_total 1\n") || !strings.Contains(got, "\ncouchdb_peruser_databases_created_total 2\n") {
			w.t.Error("the failure is not counted")
		}
		if got := h.logs.FilterMessage("an account gets no database").Len(); got != 1 {
			w.t.Errorf("%d lines of the account that gets none", got)
		}
		h.setting("enable", "false")
		h.want("DELETE", "/_users/org.couchdb.user:ann?rev="+h.revOf("/_users/org.couchdb.user:ann"), "", "200")
		h.want("PUT", "/_users/org.couchdb.user:kim", account("kim"), "201")
		<-time.After(10 * time.Second)
		h.want("GET", "/userdb-6b696d", "", "404")
		h.setting("enable", "true")
		h.end()
		h.start()
		h.soon("GET", "/userdb-6b696d/_security", "", owns("kim"))
		h.soon("GET", "/userdb-616e6e/_security", "", ownedByNobody)
	})
}

// One node of a cluster does it, and another one when that one dies; nothing is missed.
func TestPerUserInCluster(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		for _, h := range []*home{a, b, c} {
			h.setting("enable", "true")
			h.setting("delete_dbs", "true")
		}
		a.soon("PUT", "/_users/org.couchdb.user:ann", account("ann"), "201")
		b.soon("GET", "/userdb-616e6e/_security", "", owns("ann"))
		byName := map[string]*home{a.name: a, b.name: b, c.name: c}
		made := 0
		for _, h := range byName {
			made += int(h.node.perUser.Figures().Created)
		}
		if made != 1 {
			w.t.Errorf("the database was made %d times", made)
		}
		owner, _ := a.node.owners.Owner(ownership.Slot("couch_peruser"))
		dead := byName[owner.Node]
		if dead == nil || dead.node.perUser.Figures().Created != 1 {
			w.t.Fatalf("%s owns the slot and has not made the database", owner.Node)
		}
		var alive *home
		for _, h := range byName {
			if h != dead {
				alive = h
			}
		}
		dead.kill()
		alive.soon("PUT", "/_users/org.couchdb.user:bob", account("bob"), "20")
		alive.soon("DELETE", "/_users/org.couchdb.user:ann?rev="+alive.revOf("/_users/org.couchdb.user:ann"), "", "20")
		alive.soon("GET", "/userdb-626f62/_security", "", owns("bob"))
		alive.soon("GET", "/userdb-616e6e", "", "404")
		dead.start()
		dead.soon("GET", "/userdb-626f62/_security", "", owns("bob"))
		dead.soon("GET", "/userdb-616e6e", "", "404")
	})
}
