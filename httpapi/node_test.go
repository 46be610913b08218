package httpapi

import (
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
)

func TestDatabases(t *testing.T) {
	a := nodeAPI(t, nil)
	const exists = `{"error":"file_exists","reason":"The database could not be created, the file already exists."}`
	const gone = `{"error":"not_found","reason":"Database does not exist."}`
	follow(t, a, []visit{
		{"adm", "GET", "/db", "", 404, gone},
		{"adm", "PUT", "/db?q=0", "", 400, "{\"error\":\"bad_request\",\"reason\":\"The `q` value should be a positive integer.\"}"},
		{"adm", "PUT", "/db?placement=a:1,b", "", 400, "{\"error\":\"bad_request\",\"reason\":\"The `placement` value should be in a format `zone:n`.\"}"},
		{"adm", "PUT", "/db?partitioned=yes", "", 400, "{\"error\":\"bad_request\",\"reason\":\"Invalid `partitioned` parameter\"}"},
		{"adm", "PUT", "/_users?partitioned=true", "", 400, `{"error":"bad_request","reason":"Cannot partition a system database"}`},
		{"adm", "PUT", "/db?engine=none", "", 400, `{"error":"bad_request","reason":"invalid_engine_extension"}`},
		{"adm", "PUT", "/db?q=3", "{broken", 201, `{"ok":true}`},
		{"adm", "PUT", "/db", "", 412, exists},
		{"adm", "GET", "/_all_dbs?startkey=%22d%22&endkey=%22e%22", "", 200, `["db"]`},
		{"adm", "GET", "/_all_dbs?startkey=5&endkey=%22_u%22", "", 200, `["_global_changes","_replicator"]`},
		{"adm", "GET", "/_all_dbs?startkey=%5B%5D", "", 200, `[]`},
		{"adm", "GET", "/_all_dbs?endkey=%7B%7D&descending=true", "", 200, `[]`},
		{"adm", "GET", "/_all_dbs?startkey=%7B%7D&descending=true&limit=1", "", 200, `["db"]`},
		{"adm", "POST", "/_dbs_info", `{"keys":["none",1]}`, 400, "{\"error\":\"bad_request\",\"reason\":\"`keys` member must be an array of strings.\"}"},
		{"adm", "POST", "/_dbs_info", `{"keys":["none"]}`, 200, `[{"key":"none","error":"not_found"}]`},
		{"adm", "GET", "/_all_dbs/x", "", 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "PUT", "/_all_dbs/x", "{}", 405, ""},
		{"adm", "GET", "/_dbs_info/x/y", "", 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "POST", "/_dbs_info/x", `{"keys":["db"]}`, 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "DELETE", "/_dbs_info/x", "", 405, `{"error":"method_not_allowed","reason":"Only GET,HEAD,POST allowed"}`},
		{"", "GET", "/_all_dbs/x", "", 401, `{"error":"unauthorized","reason":"You are not a server admin."}`},
		{"adm", "GET", "/db/_revs_limit", "", 200, "1000"},
		{"adm", "PUT", "/db/_revs_limit", "1.0", 400, "{\"error\":\"bad_request\",\"reason\":\"`revs_limit` must be a positive integer\"}"},
		{"adm", "PUT", "/db/_revs_limit", " 7 ", 200, `{"ok":true}`},
		{"adm", "GET", "/db/_revs_limit", "", 200, "7"},
		{"adm", "PUT", "/db/_purged_infos_limit", "null", 400, "{\"error\":\"bad_request\",\"reason\":\"`purged_infos_limit` must be positive integer\"}"},
		{"adm", "GET", "/db/_temp_view", "", 410, `{"error":"gone","reason":"Temporary views are not supported in CouchDB"}`},
		{"adm", "GET", "/db/_partition/p", "", 400, `{"error":"bad_request","reason":"database is not partitioned"}`},
		{"adm", "GET", "/db/_shards/a", "", 200, ""},
		{"adm", "POST", "/db/_revs_diff", `{"x":["1-a"],"y":[]}`, 200, `{"x":{"missing":["1-a"]}}`},
		{"adm", "POST", "/db/_revs_diff", `{"y":["1-a"],"x":5}`, 400, `{"error":"bad_request","reason":"Invalid revisions, must be a list"}`},
		{"adm", "POST", "/db/_missing_revs", `{"x":null}`, 400, `{"error":"bad_request","reason":"Invalid revisions, must be a list"}`},
		{"adm", "POST", "/db/_purge", `{"x":"1-a"}`, 400, `{"error":"bad_request","reason":"Invalid list of revisions"}`},
		{"adm", "POST", "/db/_missing_revs", `{"x":["1-a"],"x":["2-b"]}`, 200, `{"missing_revs":{"x":["2-b"]}}`},
		{"adm", "POST", "/db/_purge", `{"x":["1-a"]}`, 201, `{"purge_seq":null,"purged":{"x":[]}}`},
		{"adm", "GET", "/db/_purged_infos", "", 200, `{"purged_infos":[{"id":"x","revs":["1-a"]}]}`},
		{"adm", "POST", "/db/_compact/none", "{}", 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "DELETE", "/db?rev=1-a", "", 400, ""},
		{"adm", "DELETE", "/db", "", 200, `{"ok":true}`},
		{"adm", "DELETE", "/db", "", 404, gone},
		{"adm", "GET", "/_nothing", "", 404, gone},
		{"", "GET", "/_nothing", "", 401, `{"error":"unauthorized","reason":"You are not a server admin."}`},
	})
}

// TestForms: what a page of another site can send with the cookie of an
// administrator changes nothing.
func TestForms(t *testing.T) {
	a := nodeAs(t, "divan@127.0.0.1", nil, func(d *core.Deps) { d.Restart = func() { t.Error("the node was restarted") } })
	apitest.Ask(t, a, "PUT /db", "", asAdmin)
	for request, bare := range map[string]int{
		"POST /_node/_local/_restart": 415, "POST /_node/_local/_config/_reload": 200,
		"POST /db/_view_cleanup": 202, "POST /db/_sync_shards": 202,
	} {
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
			if w := apitest.Ask(t, a, request, "", asAdmin, "Content-Type: "+kind); w.Code != 415 {
				t.Errorf("%s as %s: %d %s", request, kind, w.Code, w.Body)
			}
		}
		if w := apitest.Ask(t, a, request, "", asAdmin); w.Code != bare {
			t.Errorf("%s without a type: %d %s, want %d", request, w.Code, w.Body, bare)
		}
	}
	for _, request := range []string{"POST /_node/_local/_config/_reload", "POST /db/_view_cleanup", "POST /db/_sync_shards"} {
		if w := apitest.Ask(t, a, request, "{}", asAdmin, asJSON); w.Code >= 300 {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
}

func TestPurgeLimits(t *testing.T) {
	a := nodeAPI(t, config.Values{"purge": {"max_document_id_number": "1", "max_revisions_number": "2"}})
	follow(t, a, []visit{
		{"adm", "PUT", "/db", "", 201, ""},
		{"adm", "POST", "/db/_purge", `{"a":["1-a"],"b":["1-b"]}`, 400, `{"error":"bad_request","reason":"Exceeded maximum number of documents."}`},
		{"adm", "POST", "/db/_purge", `{"a":["1-a","2-b","3-c"]}`, 400, `{"error":"bad_request","reason":"Exceeded maximum number of revisions."}`},
		{"adm", "POST", "/db/_purge", `{"a":["1-a","2-b"]}`, 201, ""},
	})
}

// TestWhoMay is the matrix of api.md section 3.
// TestUsersBehindAPrefix has a database of users under another name: no
// password is kept as it was sent, and strangers see what they see of _users.
func TestUsersBehindAPrefix(t *testing.T) {
	s := newSite(t, nil)
	const db, doc = "/backup%2Fof%2F_users", "/org.couchdb.user:eve"
	s.text(201, "PUT", db, nil)
	s.text(200, "PUT", db+"/_security", `{}`)
	s.text(403, "PUT", db+"/eve", `{"name":"eve","type":"user","roles":[],"password":"plain apple"}`)
	s.text(201, "PUT", db+doc, `{"name":"eve","type":"user","roles":[],"password":"plain apple"}`)
	s.text(201, "POST", db+"/_bulk_docs", `{"docs":[{"_id":"org.couchdb.user:bob","name":"bob","type":"user","roles":[],"password":"plain pear"}]}`)
	got := s.text(200, "GET", db+"/_all_docs?include_docs=true", nil)
	if strings.Count(got, `"derived_key"`) != 2 || strings.Contains(got, "plain") {
		t.Error(got)
	}
	for path, status := range map[string]int{doc: 404, "/_all_docs?include_docs=true": 401, "/_changes?include_docs=true": 401, "/_local_docs": 401} {
		if w := apitest.Ask(t, s.api, "GET "+db+path, ""); w.Code != status {
			t.Errorf("%s by a stranger: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestWhoMay(t *testing.T) {
	a := nodeAPI(t, nil)
	user := func(name, roles string) visit {
		return visit{
			"adm", "PUT", "/_users/org.couchdb.user:" + name,
			`{"name":"` + name + `","type":"user","roles":[` + roles + `],"password":"pw"}`, 201, "",
		}
	}
	follow(t, a, []visit{
		user("mem", ""), user("rol", `"readers"`), user("own", ""), user("out", `"elsewhere"`), user("met", `"_metrics"`),
		{"adm", "PUT", "/db", "", 201, ""},
		{"adm", "PUT", "/db/_security", `{"admins":{"names":["own"]},"members":{"names":["mem"],"roles":["readers"]}}`, 200, ""},
		{"adm", "PUT", "/old", "", 201, ""},
		{"adm", "PUT", "/old/_security", `{"readers":{"names":["mem"]}}`, 200, ""},
		{"adm", "PUT", "/open", "", 201, ""},
		{"adm", "PUT", "/open/_security", `{}`, 200, ""},
	})
	const (
		serverAdmin = `{"error":"unauthorized","reason":"You are not a server admin."}`
		metrics     = `{"error":"unauthorized","reason":"You are not a server admin or read-only metrics user"}`
		serverOrDB  = `{"error":"unauthorized","reason":"You are not a server or db admin."}`
		dbOrServer  = `{"error":"unauthorized","reason":"You are not a db or server admin."}`
		nobody      = `{"error":"unauthorized","reason":"You are not authorized to access this db."}`
		forbidden   = `{"error":"forbidden","reason":"You are not allowed to access this db."}`
	)
	var steps []visit
	add := func(method, target, send string, ok int, answers map[string]string) {
		for _, who := range []string{"", "out", "mem", "rol", "own", "met", "adm"} {
			s := visit{who, method, target, send, ok, ""}
			if refusal, refused := answers[who]; refused {
				s.status, s.body = 401, refusal
				if refusal == forbidden {
					s.status = 403
				}
			}
			if who != "" && who != "adm" {
				s.who += ":pw"
			}
			steps = append(steps, s)
		}
	}
	strangers := map[string]string{"": nobody, "out": forbidden, "met": forbidden}
	with := func(base map[string]string, refusal string, who ...string) map[string]string {
		out := map[string]string{}
		for k, v := range base {
			out[k] = v
		}
		for _, w := range who {
			out[w] = refusal
		}
		return out
	}
	noAdmins := with(nil, serverAdmin, "", "out", "mem", "rol", "own", "met")
	add("GET", "/_up", "", 200, nil)
	add("GET", "/_membership", "", 200, noAdmins)
	add("GET", "/_all_dbs", "", 200, noAdmins)
	add("GET", "/_node/_local/_config", "", 200, noAdmins)
	add("GET", "/_node/_local/_versions", "", 200, noAdmins)
	add("GET", "/_node/_local/_stats", "", 200, with(nil, metrics, "", "out", "mem", "rol", "own"))
	add("GET", "/_node/_local/_system", "", 200, with(nil, metrics, "", "out", "mem", "rol", "own"))
	add("GET", "/_node/_local/_prometheus", "", 200, with(nil, metrics, "", "out", "mem", "rol", "own"))
	add("GET", "/db", "", 200, strangers)
	add("GET", "/db/_all_docs", "", 200, strangers)
	add("GET", "/db/_security", "", 200, strangers)
	add("GET", "/old", "", 200, with(strangers, forbidden, "rol", "own"))
	add("GET", "/open", "", 200, nil)
	add("PUT", "/db/_revs_limit", "9", 200, with(strangers, dbOrServer, "mem", "rol"))
	add("POST", "/db/_compact", "{}", 202, with(strangers, serverOrDB, "mem", "rol"))
	add("POST", "/db/_view_cleanup", "{}", 202, with(strangers, serverOrDB, "mem", "rol"))
	add("POST", "/db/_sync_shards", "{}", 202, noAdmins)
	add("POST", "/db/_purge", "{}", 201, noAdmins)
	add("GET", "/db/_purged_infos_limit", "", 200, noAdmins)
	add("GET", "/_users/_all_docs", "", 200, noAdmins)
	add("GET", "/_users/_design_docs", "", 200, with(with(nil, forbidden, "out", "mem", "rol", "own", "met"), nobody, ""))
	add("GET", "/_global_changes", "", 200, noAdmins)
	add("PUT", "/_users/_security", "{}", 403, with(with(nil, forbidden, "out", "mem", "rol", "own", "met"), nobody, ""))
	follow(t, a, steps)
}

func TestConfiguration(t *testing.T) {
	a := nodeAPI(t, nil)
	follow(t, a, []visit{
		{"adm", "PUT", "/_node/_local/_config/mine/a", `" one "`, 200, `""`},
		{"adm", "PUT", "/_node/_local/_config/mine/a", `{"x": 1}`, 200, `"one"`},
		{"adm", "GET", "/_node/divan@127.0.0.1/_config/mine", "", 200, `{"a":"{\"x\":1}"}`},
		{"adm", "PUT", "/_node/_local/_config/query_servers/x", `broken`, 403, ""},
		{"adm", "PUT", "/_node/_local/_config/mine/b", `broken`, 400, `{"error":"bad_request","reason":"invalid UTF-8 JSON"}`},
		{"adm", "DELETE", "/_node/_local/_config/mine/b", "", 404, `{"error":"not_found","reason":"unknown_config_value"}`},
		{"adm", "DELETE", "/_node/_local/_config/mine/a", "", 200, `"{\"x\":1}"`},
		{"adm", "GET", "/_node/nonode@nohost", "", 200, `{"name":"divan@127.0.0.1"}`},
		{"adm", "PUT", "/_node/nonode@nohost/_config/mine/c", `"x"`, 200, `""`},
		{"adm", "GET", "/_node/couchdb@127.0.0.1/_config/mine/c", "", 200, `"x"`},
		{"adm", "GET", "/_node/couchdb%40127.0.0.1/_stats/couchdb/x", "", 200, "null"},
		{"", "GET", "/_node/nonode@nohost/_config", "", 401, ""},
		{"adm", "GET", "/_node/none/_stats", "", 412, `{"error":"nodedown","reason":"none is down"}`},
		{"adm", "GET", "/_node/nobody/_stats", "", 404, `{"error":"not_found","reason":"no such node: nobody"}`},
		{"adm", "GET", "/_node/nobody@nowhere/_config", "", 404, `{"error":"not_found","reason":"no such node: nobody@nowhere"}`},
		{"adm", "GET", "/_node/_local/_config/a/b/c", "", 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "PUT", "/_node/_local/_config/chttpd/max_connections", `"0"`, 200, ""},
		{"adm", "POST", "/_node/_local/_config/_reload", "", 200, `{"ok":true}`},
	})
}
