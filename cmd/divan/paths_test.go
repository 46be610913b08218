package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pathDatabases have one to five parts in their names; some are the beginning of
// another, some have a part that looks like a signature or a suffix.
var pathDatabases = []string{
	"a/b/c/d/e", "couch.couch", "team", "team//gap", "team/0123456789abcdef0123456789abcdef/x", "team/pond", "team/pond/frog", "team/pond/x_1763600000",
}

// TestNamesWithSlashes: what a database with slashes in its name has, and its
// neighbours, is there after a restart, for check, for recover, and gone when it
// is deleted.
func TestNamesWithSlashes(t *testing.T) {
	dir := t.TempDir()
	serve := func() (*process, *client) {
		p := startServer(t, adminEnviron(), "--data", dir)
		return p, newClient(t, p.address)
	}
	p, c := serve()
	for n, db := range pathDatabases {
		c.want(t, "PUT", at(db, "?q=2"), "", 201)
		for i := range 10 + n {
			c.want(t, "PUT", at(db, fmt.Sprintf("/d%02d", i)), fmt.Sprintf(`{"n":%d}`, i), 201)
		}
		c.want(t, "PUT", at(db, "/d00/a.txt?rev="+revOf(t, c, at(db, "/d00"))), strings.Repeat("frog", 20000), 201)
		c.want(t, "PUT", at(db, "/_design/x"), `{"views":{"v":{"map":"function (doc) { emit(doc.n, null); }","reduce":"_count"}}}`, 201)
		c.want(t, "POST", at(db, "/_index"), `{"index":{"fields":["n"]},"ddoc":"m","name":"m"}`, 200)
		c.want(t, "POST", at(db, "/_find"), `{"selector":{"n":{"$gt":5}}}`, 200)
		c.want(t, "GET", at(db, "/_design/x/_view/v"), "", 200)
	}
	wantPaths(t, c, dir, pathDatabases)
	for _, db := range pathDatabases {
		c.want(t, "POST", at(db, "/_compact"), "{}", 202)
		c.want(t, "POST", at(db, "/_view_cleanup"), "{}", 202)
	}
	p.stop()

	p, c = serve()
	wantPaths(t, c, dir, pathDatabases)
	p.stop()
	checkDirectory(t, dir)
	for _, gone := range []string{"meta", "recovery"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	if status, out := run(t, nil, "recover", dir); status != 0 {
		t.Fatalf("recover: %s", out)
	}

	p, c = serve()
	wantPaths(t, c, dir, pathDatabases)
	left := slices.Clone(pathDatabases)
	for _, db := range []string{"team/pond", "a/b/c/d/e", "team", "team/pond/frog", "couch.couch", "team//gap"} {
		c.want(t, "DELETE", at(db, ""), "", 200)
		left = slices.DeleteFunc(left, func(s string) bool { return s == db })
		wantPaths(t, c, dir, left)
	}
	p.stop()
	p, c = serve()
	wantPaths(t, c, dir, left)
	p.stop()
	checkDirectory(t, dir)
}

func at(db, rest string) string { return "/" + url.PathEscape(db) + rest }

// wantPaths looks for all that these databases had, as it is without any work, and
// that the directories below shards and indexes are theirs.
func wantPaths(t *testing.T, c *client, dir string, dbs []string) {
	t.Helper()
	for n, db := range pathDatabases {
		if !slices.Contains(dbs, db) {
			c.want(t, "GET", at(db, ""), "", 404)
			continue
		}
		want := fmt.Sprintf(`"value":%d}`, 10+n)
		if got := c.want(t, "GET", at(db, "/_design/x/_view/v?update=false"), "", 200); !strings.Contains(got, want) {
			t.Errorf("%s: the view without an update is %s, want %s", db, got, want)
		}
		if got := c.want(t, "POST", at(db, "/_find"), `{"selector":{"n":{"$gt":5}},"update":false,"fields":["n"]}`, 200); !strings.Contains(got, `{"n":6}`) {
			t.Errorf("%s: the index without an update is %s", db, got)
		}
		if got := c.want(t, "GET", at(db, "/d00/a.txt"), "", 200); len(got) != 80000 {
			t.Errorf("%s: the attachment has %d bytes", db, len(got))
		}
	}
	body, err := json.Marshal(map[string]any{"keys": dbs})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.want(t, "POST", "/_dbs_info", string(body), 200); strings.Count(got, `"sizes"`) != len(dbs) {
		t.Errorf("_dbs_info: %s", got)
	}
	eventually(t, "no directory of a database that is gone is left", func() bool { return len(strayDirs(dir, dbs)) == 0 })
}

// strayDirs lists the directories below shards and indexes that are neither of these
// databases, nor above one of theirs.
func strayDirs(dir string, dbs []string) (out []string) {
	for _, root := range []string{"shards", "indexes"} {
		_ = filepath.WalkDir(filepath.Join(dir, root), func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return nil //nolint:nilerr // it went meanwhile
			}
			rest := strings.TrimPrefix(strings.TrimPrefix(name, filepath.Join(dir, root)), "/")
			_, db, below := strings.Cut(strings.ReplaceAll(rest, "/~", "/"), "/") // an empty part is written ~
			of := func(known string) bool {
				return strings.HasPrefix(db, known+".") || strings.HasPrefix(known, strings.TrimSuffix(db, "/")+"/")
			}
			if below && !strings.HasPrefix(db, "_") && !slices.ContainsFunc(dbs, of) {
				out = append(out, name)
			}
			return nil
		})
	}
	return out
}
