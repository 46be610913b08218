package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/httpapi/node"
	"divan/reshard"
	"divan/reshard/reshardtest"
)

// openPosts lists what takes a POST that is not application/json, with the reason. A page of another site can have
// a browser send such a request with the cookie of its user. The page does not see the answer.
var openPosts = map[string]string{
	"/_all_docs/queries":               "changes nothing",
	"/_design_docs/queries":            "changes nothing",
	"/_local_docs/queries":             "changes nothing",
	"/_session":                        "a login page sends a form, as CouchDB's clients do; the name and the password are in it",
	"/{doc}":                           "multipart/form-data as CouchDB takes it; a Referer of another host is refused",
	"/_design/{doc}":                   "as /{doc}",
	"/_local/{doc}":                    "as /{doc}",
	"/_design/{doc}/_update/{rest:.+}": "update functions take forms: that is what they are for",
	"/_design/{doc}/_show/{rest:.+}":   "changes nothing",
	"/_design/{ddoc}/_search/{index}":  "changes nothing, and CouchDB takes every type",
	"/_partition/{partition}/_design/{ddoc}/_search/{index}": "as above",
}

// neverReached are refusals of this node and this database that come before the type is looked at.
var neverReached = []string{"database is not partitioned", "path not recognized", "Incomplete path to _node request", "This node is not part of a cluster"}

// TestPostsOfOtherSites goes through every route that takes a POST: without application/json it answers 415 unless
// openPosts names it.
func TestPostsOfOtherSites(t *testing.T) {
	const name = "divan@127.0.0.1"
	deps := apitest.NodeDeps(t, name, nil)
	group := reshardtest.NewGroup(name)
	deps.Reshard = reshard.NewTable(group, deps.Meta, deps.Config)
	deps.Restart = func() { t.Error("the node was restarted") }
	a, err := New(deps)
	apitest.Must(t, err)
	for _, put := range [][2]string{
		{"/x", ""},
		{"/x/x", "{}"},
		{"/x/_local/x", "{}"},
		{"/x/_design/x", `{"views":{"x":{"map":"function(d){emit(1)}"}},"updates":{"x":"function(d,r){return [null,'']}"},"shows":{"x":"function(){return ''}"},
			"lists":{"x":"function(){return ''}"},"rewrites":[{"from":"x","to":"../.."}],"indexes":{"x":{"index":"function(d){}"}},"nouveau":{"x":{"index":"function(d){}"}}}`},
	} {
		if w := apitest.Ask(t, a, "PUT "+put[0], put[1], asAdmin, jsonBody); w.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", put[0], w.Code, w.Body)
		}
	}
	family, err := node.New(a.API)
	apitest.Must(t, err)
	families, err := routes(a.API, family)
	apitest.Must(t, err)
	seen := map[string]bool{}
	for _, rows := range families {
		for i := range rows {
			if r := &rows[i]; r.Post != nil || r.Any != nil {
				checkPost(t, a, r, seen)
			}
		}
	}
	for path := range openPosts {
		if !seen[path] {
			t.Errorf("%s is not open any more", path)
		}
	}
}

func checkPost(t *testing.T, a http.Handler, r *core.Route, seen map[string]bool) {
	t.Helper()
	path := placeholder.ReplaceAllString(strings.ReplaceAll(r.Path, "{node}", "_local"), "x")
	if r.Table != core.ServerTable {
		path = "/x" + strings.TrimSuffix(path, "/")
	}
	for what, headers := range map[string][]string{
		"text":     {"Content-Type: text/plain"},
		"a form":   {"Content-Type: application/x-www-form-urlencoded"},
		"no type":  {"Origin: http://other.example"},
		"files":    {"Content-Type: multipart/form-data; boundary=x"},
		"disguise": {"Content-Type: text/plain; application/json"},
	} {
		for _, body := range []string{"", `{"action":"x"}`} {
			w := apitest.Ask(t, a, "POST "+path, body, append(headers, asAdmin)...)
			switch w.Code {
			case http.StatusUnsupportedMediaType, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
				continue
			}
			if slices.ContainsFunc(neverReached, func(reason string) bool { return strings.Contains(w.Body.String(), reason) }) {
				continue
			}
			if openPosts[r.Path] == "" {
				t.Errorf("POST %s with %s: %d %s", r.Path, what, w.Code, w.Body)
			}
			seen[r.Path] = true
		}
	}
}
