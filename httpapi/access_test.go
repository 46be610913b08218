package httpapi

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
	"divan/httpapi/node"
)

var updateAccess = flag.Bool("update-access", false, "write testdata/access.txt anew")

// TestAccess compares who may make which request with testdata/access.txt, which lists every
// route and method. A new route is refused to all but server administrators until its row says
// otherwise, and until the file does.
func TestAccess(t *testing.T) {
	deps := apitest.NodeDeps(t, "divan@127.0.0.1", config.Values{
		"chttpd":      {"authentication_handlers": "{chttpd_auth, proxy_authentication_handler}, {chttpd_auth, default_authentication_handler}"},
		"chttpd_auth": {"proxy_use_secret": "false"},
		"couchdb":     {"users_db_security_editable": "true"},
	})
	real, err := New(deps)
	apitest.Must(t, err)
	const admin = "Authorization: Basic YWRtOnBhc3M="
	for _, db := range databases {
		path := "/" + strings.ReplaceAll(db, "/", "%2F")
		if w := apitest.Ask(t, real, "PUT "+path, "", admin); w.Code >= 400 && w.Code != http.StatusPreconditionFailed {
			t.Fatalf("%s: %d %s", db, w.Code, w.Body)
		}
		security := `{"admins":{"names":["dbadmin"]},"members":{"names":["member"]}}`
		if db == "open" {
			security = `{"admins":{"names":["dbadmin"]}}`
		}
		if w := apitest.Ask(t, real, "PUT "+path+"/_security", security, admin, jsonBody); w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", db, w.Code, w.Body)
		}
	}
	routes, stub := stubs(t, deps)
	got := matrix(t, stub, routes)
	const file = "testdata/access.txt"
	if *updateAccess {
		apitest.Must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	apitest.Must(t, err)
	if got == string(want) {
		return
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			t.Fatalf("%s, line %d:\n%s\nnow:\n%s\nIf it is meant: go test ./httpapi -run TestAccess -update-access, and look at what has changed.", file, i+1, was[i], is[i])
		}
	}
	t.Fatalf("%s has %d lines, now there are %d", file, len(was), len(is))
}

// TestNeedsAccount lists what is open without an account where every request needs one.
func TestNeedsAccount(t *testing.T) {
	for setting, want := range map[string][]string{
		"require_valid_user":               {"GET /_utils", "GET /_utils/index.html", "GET /_utils/session.html", "GET /_utils/{file}", "GET /_utils/{rest:.+}", "POST /_session"},
		"require_valid_user_except_for_up": {"GET /_up", "GET /_utils", "GET /_utils/index.html", "GET /_utils/session.html", "GET /_utils/{file}", "GET /_utils/{rest:.+}", "POST /_session"},
	} {
		rows, a := stubs(t, apitest.NodeDeps(t, "divan@127.0.0.1", config.Values{"chttpd": {setting: "true"}}))
		var open []string
		for _, r := range rows {
			path := r.Path
			if r.Table != core.ServerTable {
				path = "/_users" + strings.TrimSuffix(path, "/")
			}
			for i, h := range []core.Handler{r.Get, r.Post, r.Put, r.Delete, r.Copy, r.Options} {
				if h == nil {
					continue
				}
				if strings.HasPrefix(mayAsk(t, a, methods[i], path), "anonymous") {
					open = append(open, methods[i]+" "+r.Path)
				}
			}
		}
		slices.Sort(open)
		if !slices.Equal(open, want) {
			t.Errorf("%s: %q", setting, open)
		}
	}
}

var (
	accounts  = []string{"anonymous", "stranger", "member", "dbadmin", "metrics", "admin"}
	databases = []string{"private", "open", "_users", "_replicator", "x/_users", "x/_replicator"}
	methods   = []string{"GET", "POST", "PUT", "DELETE", "COPY", "OPTIONS"}
)

// stubs is an API whose handlers do nothing, and the rows of its tables.
func stubs(t *testing.T, deps core.Deps) ([]core.Route, *core.API) {
	t.Helper()
	a := core.New(deps)
	family, err := node.New(a)
	apitest.Must(t, err)
	families, err := routes(a, family)
	apitest.Must(t, err)
	rows := slices.Concat(families...)
	for i := range rows {
		m := &rows[i].Methods
		for _, h := range []*core.Handler{&m.Get, &m.Post, &m.Put, &m.Delete, &m.Copy, &m.Options, &m.Any} {
			if *h != nil {
				*h = func(c *core.Call) error { return c.Response.SendEmpty(http.StatusOK) }
			}
		}
	}
	a.Mount(rows)
	return rows, a
}

// matrix makes each request as each account, and tells who may: a paragraph for each path, in which
// methods and databases with the same answer stand together.
func matrix(t *testing.T, a http.Handler, rows []core.Route) string {
	t.Helper()
	byPath := map[string]map[string][]string{} // path → who may → methods
	add := func(path, method, send string) {
		may := "        " + mayAsk(t, a, send, path)
		if strings.HasPrefix(path, "/{db}") {
			may = inDatabases(t, a, send, strings.TrimPrefix(path, "/{db}"))
		}
		if byPath[path] == nil {
			byPath[path] = map[string][]string{}
		}
		byPath[path][may] = append(byPath[path][may], method)
	}
	for _, r := range rows {
		path := r.Path
		if r.Table != core.ServerTable {
			path = "/{db}" + strings.TrimSuffix(r.Path, "/")
		}
		for i, h := range []core.Handler{r.Get, r.Post, r.Put, r.Delete, r.Copy, r.Options} {
			if h != nil {
				add(path, methods[i], methods[i])
			}
		}
		if r.Any != nil {
			add(path, "any other", "PATCH")
		}
	}
	for _, path := range []string{ // of no row, or written in another way
		"/_unknown", "/_global_changes", "/{db}/_unknown", "/{db}/_unknown/more", "/{db}/_local%2F{doc}", "/{db}/_design%2F{doc}",
		"/{db}/_design%2F{doc}/{attachment}", "/{db}/_%61ll_docs", "/{db}//_all_docs",
	} {
		add(path, "GET", "GET")
	}
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		fmt.Fprintln(&out, path)
		for _, may := range slices.Sorted(maps.Keys(byPath[path])) {
			fmt.Fprintf(&out, "    %s\n%s\n", strings.Join(byPath[path][may], " "), may)
		}
	}
	return out.String()
}

// inDatabases is mayAsk for a path below each kind of database.
func inDatabases(t *testing.T, a http.Handler, method, below string) string {
	t.Helper()
	var order, lines []string
	of := map[string][]string{}
	for _, db := range databases {
		may := mayAsk(t, a, method, "/"+strings.ReplaceAll(db, "/", "%2F")+below)
		if of[may] == nil {
			order = append(order, may)
		}
		of[may] = append(of[may], db)
	}
	for _, may := range order {
		lines = append(lines, "        "+strings.Join(of[may], ", ")+": "+may)
	}
	return strings.Join(lines, "\n")
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// mayAsk returns the accounts that may make a request.
func mayAsk(t *testing.T, a http.Handler, method, path string) string {
	t.Helper()
	path = placeholder.ReplaceAllString(strings.ReplaceAll(path, "{node}", "_local"), "x")
	var may []string
	for _, who := range accounts {
		headers := []string{"X-Auth-CouchDB-UserName: " + who}
		switch who {
		case "anonymous":
			headers = nil
		case "metrics":
			headers = append(headers, "X-Auth-CouchDB-Roles: _metrics")
		case "admin":
			headers = []string{"Authorization: Basic YWRtOnBhc3M="}
		}
		w := apitest.Ask(t, a, method+" "+path, "", headers...)
		if w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden {
			may = append(may, who)
		}
	}
	return strings.Join(may, " ")
}
