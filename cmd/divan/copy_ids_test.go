package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWithoutCopyIDs: what a program that knew no ids of copies has left is served, and
// says from then on which copies it is. Its shards are older than the metadata of an
// index, which is not built again.
func TestWithoutCopyIDs(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("tar", "xzf", "testdata/without-copy-ids.tar.gz", "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir = filepath.Join(dir, "data")
	stores := func(format string) []string {
		t.Helper()
		var all []string
		for _, pattern := range []string{"shards/*/*/", "shards/*/*/*/"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern+"STORE-"+format+"-*"))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
		}
		return all
	}
	if old := stores("2"); len(old) != 9 {
		t.Fatalf("%q", old)
	}
	if status, out := run(t, nil, "check", dir); status != 0 {
		t.Errorf("check: exit status %d, %s", status, out)
	}
	for range 2 { // the second time all have ids
		p := startServer(t, adminEnviron(), "--data", dir)
		c := newClient(t, p.address)
		for _, path := range []string{"/pond/frog1", "/pond/frog5", "/empty", "/team%2Fnotes", "/_users"} {
			c.want(t, "GET", path, "", 200)
		}
		if rows := c.want(t, "GET", "/pond/_design/count/_view/n", "", 200); strings.Count(rows, `"id":"frog`) != 5 {
			t.Errorf("rows of the index: %s", rows)
		}
		c.want(t, "POST", "/empty", `{"n":1}`, 201)
		p.stop()
		if old, named := stores("2"), stores("3"); len(old) != 0 || len(named) != 9 {
			t.Errorf("without ids: %q; with: %q", old, named)
		}
		if aside := stores("*/.orphaned"); len(aside) != 0 {
			t.Errorf("set aside: %q", aside)
		}
	}
	if status, out := run(t, nil, "check", dir); status != 0 {
		t.Errorf("check: exit status %d, %s", status, out)
	}
}
