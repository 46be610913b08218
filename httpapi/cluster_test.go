package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"divan/cluster/meta"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// link is the network between APIs in one process: what one asks is given to
// the other's ServeNode. Nodes that are down are not in it.
type link struct {
	self  string
	nodes map[string]*API
	seeds core.SeedStatus
	inv   core.Invitation
	taken func(core.Invitation) (core.NodeInfo, error)
}

func (l *link) Invitation() core.Invitation { return l.inv }

func (l *link) Accept(_ context.Context, inv core.Invitation) (core.NodeInfo, error) {
	return l.taken(inv)
}

func (l *link) Members() []string {
	var out []string
	for name := range l.nodes {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (l *link) Ask(ctx context.Context, node, service string, request []byte) ([]byte, error) {
	a := l.nodes[node]
	if a == nil || service != "http" {
		return nil, fault.Newf(fault.NodeDown, "Node %s cannot be reached.", node)
	}
	return a.ServeNode(ctx, l.self, request)
}

func (l *link) Seeding() core.SeedStatus { return l.seeds }

// couple starts two nodes that can ask each other. Both know a third one that
// is down. They do not share their metadata, so that each answer shows whose
// it is.
func couple(t *testing.T) (first, second *API) {
	t.Helper()
	const one, two = "one@127.0.0.1", "two@127.0.0.1"
	nodes := map[string]*API{}
	for _, name := range []string{one, two} {
		l := &link{self: name, nodes: nodes, seeds: core.SeedStatus{Joined: true}}
		nodes[name] = nodeAs(t, name, nil, func(d *core.Deps) {
			d.Cluster = l
			d.Tasks = func() []core.Task {
				return []core.Task{{Node: name, Type: "database_compaction", StartedOn: time.Unix(1, 0), Updated: time.Unix(2, 0)}}
			}
		})
		for _, other := range []string{one, two, "away@127.0.0.1"} {
			apitest.Must(t, nodes[name].Deps.Meta.PutNode(t.Context(), meta.Node{Name: other, ClusterVersion: meta.ClusterVersion}))
		}
	}
	return nodes[one], nodes[two]
}

func TestOtherNodes(t *testing.T) {
	first, second := couple(t)
	const one, two, away = "/_node/one@127.0.0.1", "/_node/two@127.0.0.1", "/_node/away@127.0.0.1"
	const down = `{"error":"nodedown","reason":"away@127.0.0.1 is down"}`
	follow(t, first, []visit{
		{"adm", "GET", two, "", 200, `{"name":"two@127.0.0.1"}`},
		{"adm", "GET", "/_node/two%40127.0.0.1", "", 200, `{"name":"two@127.0.0.1"}`},
		{"adm", "PUT", two + "/_config/mine/a", `"b"`, 200, `""`},
		{"adm", "GET", two + "/_config/mine", "", 200, `{"a":"b"}`},
		{"adm", "GET", one + "/_config/mine", "", 200, `{}`},
		{"adm", "GET", two + "/_config/mine/b", "", 404, `{"error":"not_found","reason":"unknown_config_value"}`},
		{"adm", "PUT", two + "/_config/mine/a", `broken`, 400, ""},
		{"adm", "PUT", two + "/_config/query_servers/a", `"x"`, 403, ""},
		{"adm", "DELETE", two + "/_config/mine/a", "", 200, `"b"`},
		{"adm", "POST", two + "/_config/_reload", "", 200, `{"ok":true}`},
		{"adm", "POST", two + "/_config", "", 405, `{"error":"method_not_allowed","reason":"Only GET allowed"}`},
		{"adm", "GET", two + "/_versions", "", 200, ""},
		{"adm", "GET", two + "/_system", "", 200, ""},
		{"adm", "GET", two + "/_prometheus", "", 200, ""},
		{"adm", "GET", two + "/_smoosh/status", "", 200, `{"channels":{}}`},
		{"adm", "GET", two + "/_stats/none", "", 200, `null`},
		{"adm", "GET", two + "/_nothing", "", 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "POST", two + "/_restart", "", 503, ""},
		{"adm", "GET", away + "/_stats", "", 412, down},
		{"adm", "PUT", away + "/_config/a/b", `"c"`, 412, down},
		{"adm", "GET", "/_node/nobody@127.0.0.1/_stats", "", 404, `{"error":"not_found","reason":"no such node: nobody@127.0.0.1"}`},
		{"adm", "GET", "/_node/nonode@nohost/_stats", "", 404, `{"error":"not_found","reason":"no such node: nonode@nohost"}`},
		{"adm", "PUT", "/_node/couchdb@127.0.0.1/_config/a/b", `"c"`, 404, ""},
		{"", "GET", two + "/_config", "", 401, ""},
		{"", "GET", two + "/_stats", "", 401, ""},
	})
	w := apitest.Ask(t, first, "POST "+two+"/_config", "", "Authorization: Basic YWRtOnBhc3M=")
	if w.Header().Get("Allow") != "GET" {
		t.Errorf("headers %v", w.Header())
	}
	w = apitest.Ask(t, first, "HEAD "+two, "", "Authorization: Basic YWRtOnBhc3M=")
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "25" {
		t.Errorf("HEAD: %d %q %v", w.Code, w.Body, w.Header())
	}
	follow(t, second, []visit{{"adm", "GET", two + "/_config/mine", "", 200, `{}`}})
}

// decodeBody returns the body of an encoded answer.
func decodeBody(answer []byte) (string, bool) {
	var a struct{ Body []byte }
	err := json.Unmarshal(answer, &a)
	return string(a.Body), err == nil
}

// What another node may ask is only what is for this node, and what the user
// may do is checked here too.
func TestServeNode(t *testing.T) {
	first, _ := couple(t)
	for _, tc := range []struct{ request, want string }{
		{`{`, "unreadable"},
		{`{"method":"GET","target":"/_all_dbs"}`, "only requests for a node"},
		{`{"method":"GET","target":"/_node/two@127.0.0.1/_config","user":{"roles":["_admin"]}}`, `"reason":"the request is for another node`},
		{`{"method":"GET","target":"/_node/one@127.0.0.1/_config","user":{"name":"x"}}`, `"status":401`},
		{`{"method":"GET","target":"/_node/one@127.0.0.1/_config","user":{"name":"x","roles":["_admin"]}}`, `"status":200`},
		{`{"method":"PUT","target":"/_node/one@127.0.0.1/_config/a/b","user":{"name":"x","roles":["_admin"]},"body":"IngiCg=="}`, `"status":200`},
	} {
		answer, err := first.ServeNode(t.Context(), "two@127.0.0.1", []byte(tc.request))
		text := string(answer)
		if err != nil {
			text = err.Error()
		} else if decoded, ok := decodeBody(answer); ok {
			text += decoded
		}
		if !strings.Contains(text, tc.want) {
			t.Errorf("%s: %s", tc.request, text)
		}
		if n := first.Memory.Used(); n != 0 {
			t.Errorf("%s: %d bytes are taken with no request under way", tc.request, n)
		}
	}
}

// TestVirtualHostOfAllNames: a virtual host for all names leaves requests between nodes alone.
func TestVirtualHostOfAllNames(t *testing.T) {
	first, _ := couple(t)
	follow(t, first, []visit{{"adm", "PUT", "/_node/_local/_config/vhosts/*.0.0.1", `"/*"`, 200, ""}})
	answer, err := first.ServeNode(t.Context(), "two@127.0.0.1", []byte(`{"method":"GET","target":"/_node/one@127.0.0.1/_config","user":{"name":"x","roles":["_admin"]}}`))
	if text := string(answer); err != nil || !strings.Contains(text, `"status":200`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestTasksOfAll(t *testing.T) {
	first, _ := couple(t)
	w := apitest.Ask(t, first, "GET /_active_tasks", "", "Authorization: Basic YWRtOnBhc3M=")
	for _, node := range []string{"one", "two"} {
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `{"node":"`+node+`@127.0.0.1"`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}

func TestUp(t *testing.T) {
	l := &link{seeds: core.SeedStatus{Seeds: []core.Seed{{Name: "a@b"}, {Name: "c@d", Asked: time.Unix(0, 0), Answer: "ok"}}}}
	a := nodeAs(t, "one@127.0.0.1", nil, func(d *core.Deps) { d.Cluster = l })
	const seeds = `,"seeds":{"a@b":{},"c@d":{"timestamp":"1970-01-01T00:00:00Z","last_replication_status":"ok","pending_updates":{"_nodes":0,"_dbs":0,"_users":0}}}}`
	follow(t, a, []visit{{"", "GET", "/_up", "", 404, `{"status":"seeding"` + seeds}})
	l.seeds.Joined = true
	follow(t, a, []visit{
		{"", "GET", "/_up", "", 200, `{"status":"ok"` + seeds},
		{"adm", "PUT", "/_node/_local/_config/couchdb/maintenance_mode", `"nolb"`, 200, ""},
		{"", "GET", "/_up", "", 404, `{"status":"nolb"}`},
		{"adm", "PUT", "/_node/_local/_config/couchdb/maintenance_mode", `"true"`, 200, ""},
		{"", "GET", "/_up", "", 404, `{"status":"maintenance_mode"}`},
		{"adm", "PUT", "/_node/_local/_config/couchdb/maintenance_mode", `"false"`, 200, ""},
	})
	l.seeds = core.SeedStatus{Joined: true}
	follow(t, a, []visit{{"", "GET", "/_up", "", 200, `{"status":"ok","seeds":{}}`}})
	a.Stop()
	follow(t, a, []visit{{"", "GET", "/_up", "", 404, `{"status":"stopping"}`}})
}

// Maintenance ends the feeds that wait; those that are asked for meanwhile
// answer what there is and end.
func TestMaintenanceEndsFeeds(t *testing.T) {
	a := nodeAPI(t, nil)
	follow(t, a, []visit{{"adm", "PUT", "/db", "", 201, ""}})
	ended := make(chan string)
	go func() {
		ended <- apitest.Ask(t, a, "GET /db/_changes?feed=continuous&heartbeat=60000", "", "Authorization: Basic YWRtOnBhc3M=").Body.String()
	}()
	apitest.WaitFor(t, func() bool { return a.OpenFeeds() == 1 })
	follow(t, a, []visit{{"adm", "PUT", "/_node/_local/_config/couchdb/maintenance_mode", `"true"`, 200, ""}})
	if text := <-ended; !strings.Contains(text, `{"last_seq":`) {
		t.Errorf("the feed ended with %q", text)
	}
	follow(t, a, []visit{
		{"adm", "PUT", "/db/a", "{}", 201, ""},
		{"adm", "GET", "/db/_changes?feed=continuous&heartbeat=60000", "", 200, ""},
		{"adm", "PUT", "/_node/_local/_config/couchdb/maintenance_mode", `""`, 200, ""},
	})
	_, leave, open := a.JoinFeeds(t.Context())
	leave()
	if !open {
		t.Error("feeds end although maintenance is over")
	}
}

func TestClusterFigures(t *testing.T) {
	a, _ := couple(t)
	a.Deps.Figures = func() core.Figures {
		return core.Figures{ReplicationBacklog: 3, ReplicationLag: 70, DiskFree: 5 << 40, DiskSize: 7 << 40, OpenSmall: 4, SmallBytes: 1 << 20, SmallDamaged: true}
	}
	w := apitest.Ask(t, a, "GET /_node/_local/_prometheus", "", "Authorization: Basic YWRtOnBhc3M=")
	for _, line := range []string{
		"couchdb_internal_replication_jobs 3\n", "couchdb_internal_replication_lag 70\n", "couchdb_disk_free_bytes 5497558138880\n", "couchdb_disk_size_bytes 7696581394432\n", "couchdb_small_stores_open 4\n", "couchdb_small_stores_bytes 1048576\n", "couchdb_small_stores_damaged 1\n", "couchdb_metadata_leader 1\n",
		"couchdb_cluster_nodes 3\n", "couchdb_cluster_node_up{node=\"away@127.0.0.1\"} 0\n", "couchdb_cluster_node_up{node=\"two@127.0.0.1\"} 1\n",
	} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("no line %s", line)
		}
	}
	w = apitest.Ask(t, a, "GET /_node/_local/_system", "", "Authorization: Basic YWRtOnBhc3M=")
	for _, part := range []string{`"internal_replication_jobs":3`, `"disk":{"free":5497558138880,"size":7696581394432}`, `"metadata":{"leader":"one@127.0.0.1","voters":["one@127.0.0.1"],"applied_index":`} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("no %s in %s", part, w.Body)
		}
	}
}

// A database none of whose copies can be reached is no reason not to answer
// about the others.
func TestInfosWithoutCopies(t *testing.T) {
	a, _ := couple(t)
	// Only this node can be reached, and with one copy of each of 30 shards
	// some are elsewhere.
	follow(t, a, []visit{
		{"adm", "PUT", "/lost?q=30&n=1", "", 201, ""},
		{"adm", "PUT", "/here?q=1&n=3", "", 201, ""},
		{"adm", "GET", "/_all_dbs", "", 200, `["_global_changes","_replicator","_users","here","lost"]`},
		{"adm", "GET", "/here", "", 200, ""},
		{"adm", "GET", "/lost", "", 503, ""},
		{"adm", "POST", "/_dbs_info", `{"keys":["lost","none"]}`, 200, `[{"key":"lost","error":"service unavailable"},{"key":"none","error":"not_found"}]`},
	})
	w := apitest.Ask(t, a, "GET /_dbs_info", "", "Authorization: Basic YWRtOnBhc3M=")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `{"key":"lost","error":"service unavailable"}`) ||
		!strings.Contains(w.Body.String(), `{"key":"here","info":`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestStatsAreJSONAndPrometheusText(t *testing.T) {
	a := nodeAPI(t, nil)
	const admin = "Authorization: Basic YWRtOnBhc3M="
	for range 3 {
		apitest.Ask(t, a, "GET /_up", "")
	}
	apitest.Ask(t, a, "POST /_session", `name=none&password=none`, "Content-Type: application/x-www-form-urlencoded")
	text := apitest.Ask(t, a, "GET /_node/_local/_stats", "", admin).Body.Bytes()
	if _, err := doc.Canonical(nil, text); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	value := bytes.TrimSpace(text)
	for _, name := range []string{"couchdb", "httpd_request_methods", "GET", "value"} {
		value = doc.Lookup(value, name)
	}
	if string(value) != "3" {
		t.Errorf("GET was counted %s times", value)
	}
	out := apitest.Ask(t, a, "GET /_node/_local/_prometheus", "", admin).Body.Bytes()
	for _, line := range []string{
		`couchdb_httpd_request_methods{method="GET"} 4`, `couchdb_httpd_status_codes{code="200"} 4`, `couchdb_httpd_requests_total 5`,
		`couchdb_request_time_seconds_count 5`, `couchdb_auth_cache_requests_total 1`, `couchdb_auth_cache_misses_total 1`, `couchdb_logins_waiting 0`, `# TYPE couchdb_open_databases gauge`, `# TYPE couchdb_document_writes_total counter`,
	} {
		if !bytes.Contains(out, []byte(line+"\n")) {
			t.Errorf("no line %q", line)
		}
	}
}
