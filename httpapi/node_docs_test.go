package httpapi

import (
	"crypto/md5"
	"encoding/hex"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

func TestNodeDocs(t *testing.T) {
	a, _ := couple(t)
	const nodes = "/_node/_local/_nodes"
	empty := madeUpRev("{}")
	zoned := madeUpRev(`{"zone":"z1","decom":true}`)
	const conflict = `{"error":"conflict","reason":"Document update conflict."}`
	follow(t, a, []visit{
		{"adm", "GET", nodes, "", 200, `{"db_name":"_nodes","doc_count":3,"doc_del_count":0}`},
		{"adm", "GET", nodes + "/two@127.0.0.1", "", 200, `{"_id":"two@127.0.0.1","_rev":"` + empty + `"}`},
		{"adm", "GET", nodes + "/none@127.0.0.1", "", 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "PUT", nodes + "/two@127.0.0.1", `{"zone":"z1"}`, 409, conflict},
		{"adm", "PUT", nodes + "/two@127.0.0.1", `{"_rev":"` + empty + `","zone":5}`, 400, refusal("`zone` must be a string")},
		{"adm", "PUT", nodes + "/two@127.0.0.1", `{"_rev":"` + empty + `","decom":"maybe"}`, 400, refusal("`decom` must be true or false")},
		{"adm", "PUT", nodes + "/two@127.0.0.1", `[]`, 400, refusal("Document must be a JSON object")},
		{"adm", "PUT", nodes + "/two@127.0.0.1", `{"_rev":"` + empty + `","zone":"z1","decom":true}`, 201, `{"ok":true,"id":"two@127.0.0.1","rev":"` + zoned + `"}`},
		{"adm", "GET", nodes + "/two@127.0.0.1", "", 200, `{"_id":"two@127.0.0.1","_rev":"` + zoned + `","zone":"z1","decom":true}`},
		{"adm", "PUT", nodes + "/nobody", `{}`, 400, refusal("The name of a node is like name@host.")},
		{"adm", "PUT", nodes + "/four@127.0.0.1", `{"port":1}`, 400, refusal("Add node failed. Invalid Host and/or Port.")},
		{"adm", "PUT", nodes + "/four@127.0.0.1", `{"port":1,"replaces":"away@127.0.0.1"}`, 400, refusal("Add node failed. Invalid Host and/or Port. " +
			"four@127.0.0.1 is not a member of the cluster: before it can replace another node it has to join, " +
			"through action add_node of POST /_cluster_setup or by a seed list.")},
		{"adm", "DELETE", nodes + "/none@127.0.0.1", "", 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "DELETE", nodes + "/away@127.0.0.1", "", 409, conflict},
		{"adm", "DELETE", nodes + "/away@127.0.0.1?rev=1-x", "", 409, conflict},
		{"adm", "DELETE", nodes + "/away@127.0.0.1?rev=" + empty, "", 200, `{"ok":true,"id":"away@127.0.0.1","rev":"` + empty + `"}`},
		{"adm", "GET", nodes + "/_all_docs", "", 200, `{"total_rows":2,"offset":0,"rows":[` + "\r\n" +
			`{"id":"one@127.0.0.1","key":"one@127.0.0.1","value":{"rev":"` + empty + `"}},` + "\r\n" +
			`{"id":"two@127.0.0.1","key":"two@127.0.0.1","value":{"rev":"` + zoned + `"}}` + "\r\n]}"},
		{"", "GET", nodes, "", 401, ""},
	})
}

func TestMapDocs(t *testing.T) {
	a := nodeAPI(t, nil)
	const maps = "/_node/_local/_dbs"
	follow(t, a, []visit{
		{"adm", "PUT", "/db?q=2&partitioned=true", "", 201, ""},
		{"adm", "GET", maps, "", 200, `{"db_name":"_dbs","doc_count":4,"doc_del_count":0}`},
		{"adm", "GET", maps + "/none", "", 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "PUT", maps + "/none", `{}`, 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "PUT", maps + "/db", `{"by_node":{}}`, 409, ""},
		{"adm", "GET", maps + "/_all_docs?include_docs=true", "", 200, ""},
	})
	w := apitest.Ask(t, a, "GET "+maps+"/db", "", "Authorization: Basic YWRtOnBhc3M=")
	text := strings.TrimSpace(w.Body.String())
	for _, part := range []string{
		`{"_id":"db","_rev":"1-`, `"shard_suffix":[46,`, `"changelog":[["add","00000000-7fffffff","divan@127.0.0.1"],`,
		`"by_node":{"divan@127.0.0.1":["00000000-7fffffff","80000000-ffffffff"]}`,
		`"by_range":{"00000000-7fffffff":["divan@127.0.0.1"],"80000000-ffffffff":["divan@127.0.0.1"]}`, `"props":{"partitioned":true}`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in %s", part, text)
		}
	}
	w = apitest.Ask(t, a, "PUT "+maps+"/db", text, "Authorization: Basic YWRtOnBhc3M=")
	if w.Code != 201 {
		t.Errorf("the same map: %d %s", w.Code, w.Body)
	}
	w = apitest.Ask(t, a, "PUT "+maps+"/db", strings.Replace(text, `["divan@127.0.0.1"]`, `["other@127.0.0.1"]`, 1), "Authorization: Basic YWRtOnBhc3M=")
	if w.Code != 400 || !strings.Contains(w.Body.String(), "not edited by hand") {
		t.Errorf("another map: %d %s", w.Code, w.Body)
	}
}

func TestReplaceNode(t *testing.T) {
	a, _ := couple(t)
	const nodes = "/_node/_local/_nodes"
	follow(t, a, []visit{
		{"adm", "PUT", "/db?q=1&n=3", "", 201, ""},
		{"adm", "PUT", nodes + "/two@127.0.0.1", `{"replaces":"nobody@127.0.0.1"}`, 404, `{"error":"not_found","reason":"no such node: nobody@127.0.0.1"}`},
		{"adm", "PUT", nodes + "/two@127.0.0.1", `{"replaces":"two@127.0.0.1"}`, 400, refusal("a node cannot take its own place")},
		{"adm", "PUT", nodes + "/two@127.0.0.1", `{"replaces":"away@127.0.0.1","force":1}`, 400, refusal("`force` must be true or false")},
		{"adm", "PUT", nodes + "/two@127.0.0.1", `{"replaces":"away@127.0.0.1"}`, 201, ""},
		{"adm", "GET", nodes + "/away@127.0.0.1", "", 404, ""},
	})
	w := apitest.Ask(t, a, "GET /db/_shards", "", "Authorization: Basic YWRtOnBhc3M=")
	if strings.Contains(w.Body.String(), "away") || !strings.Contains(w.Body.String(), "two@") {
		t.Errorf("the map still says %s", w.Body)
	}
	follow(t, a, []visit{
		{"adm", "POST", "/_cluster_setup", `{"action":"remove_node"}`, 201, setupOK},
		{"adm", "POST", "/_cluster_setup", `{"action":"remove_node","name":"two@127.0.0.1"}`, 201, setupOK},
		{"adm", "GET", "/_membership", "", 200, `{"all_nodes":["one@127.0.0.1","two@127.0.0.1"],"cluster_nodes":["one@127.0.0.1"]}`},
	})
}

func TestReplaceOnlyHolder(t *testing.T) {
	a, _ := couple(t)
	const two = "/_node/_local/_nodes/two@127.0.0.1"
	follow(t, a, []visit{
		{"adm", "PUT", "/db?q=3&n=1", "", 201, ""},
		{"adm", "PUT", two, `{"replaces":"away@127.0.0.1"}`, 409, `{"error":"conflict","reason":"away@127.0.0.1 has the only full copy of a range of ` +
			`database \"db\", or one that others are still filled from. Where copies join (_lost_shards) or move (_reshard/jobs), wait and try again. \"force\": true in the body gives up what only away@127.0.0.1 has."}`},
		{"adm", "GET", "/_node/_local/_nodes/away@127.0.0.1", "", 200, ""},
		{"adm", "PUT", two, `{"replaces":"away@127.0.0.1","force":true}`, 201, ""},
		{"adm", "GET", "/_node/_local/_nodes/away@127.0.0.1", "", 404, ""},
	})
}

// TestNodeDocIfMatch: a revision in If-Match counts as one in the query does,
// and with both, both have to be right.
func TestNodeDocIfMatch(t *testing.T) {
	a, _ := couple(t)
	const away = "/_node/_local/_nodes/away@127.0.0.1"
	rev := madeUpRev("{}")
	for _, tc := range []struct {
		query, tag string
		want       int
	}{
		{"", `"1-x"`, 409},
		{"", "1-x", 409},
		{"?rev=" + rev, `"1-x"`, 409},
		{"?rev=1-x", `"` + rev + `"`, 409},
		{"", `""`, 409},
		{"", `"` + rev + `"`, 200},
	} {
		w := apitest.Ask(t, a, "DELETE "+away+tc.query, "", asAdmin, "If-Match: "+tc.tag)
		if _, there := a.Deps.Meta.Node("away@127.0.0.1"); w.Code != tc.want || there != (tc.want == 409) {
			t.Fatalf("%q, If-Match %s: %d %s, still a member: %v", tc.query, tc.tag, w.Code, w.Body, there)
		}
	}
}

// madeUpRev is the revision of a document that is not stored: of its content.
func madeUpRev(body string) string {
	sum := md5.Sum([]byte(body))
	return "1-" + hex.EncodeToString(sum[:])
}
