package httpapi

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/reshard"
	"divan/reshard/reshardtest"
)

// reshardAPI is an API whose jobs stay as they are made.
func reshardAPI(t *testing.T, values map[string]string) *API {
	t.Helper()
	const name = "divan@127.0.0.1"
	group := reshardtest.NewGroup(name)
	return nodeAs(t, name, config.Values{"reshard": values}, func(d *core.Deps) {
		d.Reshard = reshard.NewTable(group, d.Meta, d.Config)
	})
}

// asker sends requests of the administrator, and compares: the answer has to be of that
// status and to hold that text.
func asker(t *testing.T, a *API) func(line, body string, status int, want string) string {
	t.Helper()
	return func(line, body string, status int, want string) string {
		t.Helper()
		w := apitest.Ask(t, a, line, body, "Authorization: Basic YWRtOnBhc3M=", "Content-Type: application/json")
		if w.Code != status || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s: %d %s, want %d %s", line, body, w.Code, w.Body, status, want)
		}
		return w.Body.String()
	}
}

var jobID = regexp.MustCompile(`001-[0-9a-f]{64}`)

// What is refused, to whom, and in which words.
func TestReshardRefusals(t *testing.T) {
	a := reshardAPI(t, nil)
	ask := asker(t, a)
	ask("PUT /pond?q=2", "", 201, "")
	for body, want := range map[string]string{
		`{"db":"pond"}`:                "`job type must be `split`",
		`{"type":"merge","db":"pond"}`: "`range` is required: that of the shards to merge, together",
		`{"type":"merge","db":"pond","range":"00000000-7fffffff"}`:                                        "No node has two or more shards that make up `range`",
		`{"type":"move","db":"pond","node":"divan@127.0.0.1"}`:                                            "`target` is required: the node that the shard is moved to",
		`{"type":"move","db":"pond","node":"divan@127.0.0.1","target":"n@h"}`:                             "`target` is not a valid node name",
		`{"type":"move","db":"pond","node":"divan@127.0.0.1","target":"divan@127.0.0.1"}`:                 "divan@127.0.0.1 has a copy of documents of 00000000-7fffffff already.",
		`{"type":"move","db":"pond"}`:                                                                     "`node` is required: the node that the shard is moved from",
		`{"type":"melt","db":"pond"}`:                                                                     "`job type must be `split`",
		`{"type":"split"}`:                                                                                "Must specify at least `db` or `shard`",
		`{"type":"split","range":"00000000-7fffffff"}`:                                                    "Must specify at least `db` or `shard`",
		`{"type":"split","db":"lake"}`:                                                                    "Invalid `db`",
		`{"type":"split","db":""}`:                                                                        "Invalid `db`",
		`{"type":"split","db":null}`:                                                                      "Invalid `db`",
		`{"type":"split","db":"pond","node":1}`:                                                           "Invalid `node`",
		`{"type":"split","db":"pond","node":"n@h"}`:                                                       "`node` is not a valid node name",
		`{"type":"split","db":"pond","range":"7fffffff-00000000"}`:                                        "Invalid `range`",
		`{"type":"split","db":"pond","range":"00000007-00000007"}`:                                        "Invalid `range`",
		`{"type":"split","db":"pond","range":0}`:                                                          "Invalid `range`",
		`{"type":"split","shard":"pond"}`:                                                                 "`shard` is invalid",
		`{"type":"split","shard":""}`:                                                                     "`shard` is invalid",
		`{"type":"split","shard":7}`:                                                                      "Invalid `shard`",
		`{"type":"split","db":"pond","shard":"shards/00000000-7fffffff/pond.1"}`:                          "mutually exclusive",
		`{"type":"split","shard":"shards/00000000-7fffffff/pond.1763600000","range":"00000000-7fffffff"}`: "mutually exclusive",
		`["pond"]`: "Request body must be a JSON object",
		`{`:        "invalid UTF-8 JSON",
	} {
		ask("POST /_reshard/jobs", body, 400, want)
	}
	for _, body := range []string{
		`{"type":"split","db":"pond","range":"00000000-3fffffff"}`,
		`{"type":"split","shard":"shards/00000000-7fffffff/pond.1000000000"}`,
		`{"type":"split","shard":"shards/0000000g-7fffffff/pond.1000000000"}`,
		`{"type":"split","shard":"shards/00000000-7fffffff/lake.1000000000"}`,
	} {
		ask("POST /_reshard/jobs", body, 404, "not_found")
	}
	for _, line := range []string{"GET /_reshard/jobs/x", "DELETE /_reshard/jobs/x", "GET /_reshard/jobs/x/state", "GET /_reshard/x", "GET /_reshard/jobs/x/y"} {
		ask(line, "", 404, `{"error":"not_found","reason":"missing"}`)
	}
	ask("PUT /_reshard/jobs/x/state", `{"state":"running"}`, 404, "missing")
	ask("PUT /_reshard/state", `{"state":"paused"}`, 400, "State field not `running` or `stopped`")
	ask("PUT /_reshard/state", `{}`, 400, "Expected a `state` field")
	ask("POST /_reshard", `{}`, 405, "Only GET,HEAD allowed")
	ask("GET /_reshard/jobs", "", 200, `{"total_rows":0,"offset":0,"jobs":[]}`)
	for _, line := range []string{"GET /_reshard", "PUT /_reshard/state", "POST /_reshard/jobs", "DELETE /_reshard/jobs/x"} {
		if w := apitest.Ask(t, a, line, ""); w.Code != 401 {
			t.Errorf("%s of a stranger: %d", line, w.Code)
		}
	}
	ask("GET /", "", 200, `"reshard"`)
}

// A node that stands alone says why there is nothing to move.
func TestRebalanceAlone(t *testing.T) {
	ask := asker(t, reshardAPI(t, nil))
	for _, line := range []string{
		"GET /_cluster/rebalance", "POST /_cluster/rebalance", "PUT /_cluster/rebalance", "DELETE /_cluster/rebalance",
		"GET /_node/_local/_drain", "POST /_node/_local/_drain", "DELETE /_node/_local/_drain",
	} {
		ask(line, `{"state":"stopped"}`, 400, "This node is not part of a cluster")
	}
}

// A merge is made for each node, and shown with what it merges.
func TestMergeJobs(t *testing.T) {
	ask := asker(t, reshardAPI(t, nil))
	ask("PUT /pond?q=4", "", 201, "")
	ask("PUT /_reshard/state", `{"state":"stopped"}`, 200, `{"ok":true}`)
	made := ask("POST /_reshard/jobs", `{"type":"merge","db":"pond","range":"00000000-7fffffff"}`, 201, `"shard":"shards/00000000-3fffffff/pond.`)
	ask("GET /_reshard/jobs/"+jobID.FindString(made), "", 200, `"sources":["shards/00000000-3fffffff/pond.`)
	for _, other := range []string{`{"type":"merge","db":"pond","range":"00000000-ffffffff"}`, `{"type":"split","db":"pond","range":"00000000-3fffffff"}`} {
		ask("POST /_reshard/jobs", other, 500, "job_already_exists")
	}
	ask("POST /_reshard/jobs", `{"type":"split","db":"pond","range":"80000000-bfffffff"}`, 201, `"ok":true`)
}

// Jobs are made for what a request names, shown, stopped and removed.
func TestReshardJobs(t *testing.T) {
	ask := asker(t, reshardAPI(t, nil))
	ask("PUT /pond?q=2", "", 201, "")
	ask("PUT /_reshard/state", `{"state":"stopped"}`, 200, `{"ok":true}`)
	ask("PUT /_reshard/state", `{"state":"stopped","reason":"another"}`, 200, `{"ok":true}`)
	ask("GET /_reshard/state", "", 200, `{"state":"stopped","reason":"Cluster-wide resharding stopped by the user"}`)
	made := ask("POST /_reshard/jobs", `{"type":"split","db":"pond","range":"80000000-FFFFFFFF","node":"divan@127.0.0.1"}`, 201, `[{"ok":true,"id":"001-`)
	id := jobID.FindString(made)
	ask("POST /_reshard/jobs", `{"type":"split","db":"pond","range":"80000000-ffffffff"}`, 500, `[{"error":"job_already_exists","node":"divan@127.0.0.1","shard":"shards/80000000-ffffffff/pond.`)
	ask("POST /_reshard/jobs", `{"type":"split","db":"pond"}`, 202, `job_already_exists`)
	ask("GET /_reshard", "", 200, `{"state":"stopped","state_reason":"Cluster-wide resharding stopped by the user","completed":0,"failed":0,"running":0,"stopped":2,"total":2}`)
	path := "/_reshard/jobs/" + id
	ask("GET "+path, "", 200, `"state_info":{"reason":"Shard splitting disabled"},"target":["shards/80000000-bfffffff/pond.`)
	ask("GET "+path+"/state", "", 200, `{"state":"stopped","reason":"Shard splitting disabled"}`)
	ask("PUT "+path+"/state", `{"state":"running"}`, 500, `{"error":"stopped"}`)
	ask("PUT "+path+"/state", `{"state":"stopped"}`, 200, `{"ok":true}`)
	ask("GET "+path+"/state", "", 200, `{"state":"stopped","reason":"Stopped by user"}`)
	ask("PUT "+path+"/state", `{"state":"stopped","state_reason":"said otherwise"}`, 200, `{"ok":true}`)
	ask("GET "+path+"/state", "", 200, `{"state":"stopped","reason":"said otherwise"}`)
	ask("PUT /_reshard/state", `{"state":"running"}`, 200, `{"ok":true}`)
	ask("GET /_reshard", "", 200, `"stopped":1,"total":2}`)
	ask("PUT "+path+"/state", `{"state":"running","reason":"of no use"}`, 200, `{"ok":true}`)
	ask("GET "+path+"/state", "", 200, `{"state":"new","reason":null}`)
	ask("DELETE "+path, "", 200, `{"ok":true}`)
	ask("GET "+path, "", 404, "missing")
	ask("DELETE "+path, "", 404, "missing")
	ask("GET /_reshard/jobs", "", 200, `{"total_rows":1,"offset":0,"jobs":[`)
}

func TestReshardLimits(t *testing.T) {
	ask := asker(t, reshardAPI(t, map[string]string{"max_jobs": "2", "require_node_param": "true", "require_range_param": "true"}))
	ask("PUT /pond?q=3", "", 201, "")
	const node = `"node":"divan@127.0.0.1"`
	ask("POST /_reshard/jobs", `{"type":"split","db":"pond","range":"00000000-55555554"}`, 400, "`node` prameter is required")
	ask("POST /_reshard/jobs", `{"type":"split","db":"pond",`+node+`}`, 400, "`range` prameter is required")
	for i, want := range []string{`"ok":true`, `"ok":true`, `{"error":"max_jobs_exceeded"`} {
		r := []string{"00000000-55555554", "55555555-aaaaaaa9", "aaaaaaaa-ffffffff"}[i]
		ask("POST /_reshard/jobs", fmt.Sprintf(`{"type":"split","db":"pond","range":"%s",%s}`, r, node), []int{201, 201, 500}[i], want)
	}
}

// A node that knows no jobs says so.
func TestNoResharding(t *testing.T) {
	asker(t, nodeAPI(t, nil))("GET /_reshard", "", 501, `{"error":"not_implemented","reason":"this feature is not yet implemented"}`)
}
