package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/storage"
)

// pond fills a data directory with what must not be lost, and returns it after a
// graceful stop.
func pond(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	p := startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	c.want(t, "PUT", "/pond?q=2", "", 201)
	c.want(t, "PUT", "/team%2Fparted?q=1&partitioned=true", "", 201)
	for i := range 20 {
		c.want(t, "PUT", fmt.Sprintf("/pond/frog%02d", i), fmt.Sprintf(`{"n":%d}`, i), 201)
	}
	c.want(t, "PUT", "/team%2Fparted/p:1", `{}`, 201)
	c.want(t, "PUT", "/pond/_security", `{"members":{"names":["ann"]}}`, 200)
	c.want(t, "PUT", "/pond/_revs_limit", "7", 200)
	c.want(t, "PUT", "/_node/_local/_config/mine/a", `"b"`, 200)
	c.want(t, "PUT", "/_users/org.couchdb.user:ann", `{"name":"ann","password":"x","roles":[],"type":"user"}`, 201)
	p.stop()
	return dir
}

// wantPond looks whether all of it is there.
func wantPond(t *testing.T, dir string, settings bool) {
	t.Helper()
	p := startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	if got := c.want(t, "GET", "/_all_dbs", "", 200); got != `["_global_changes","_replicator","_users","pond","team/parted"]` {
		t.Errorf("databases: %s", got)
	}
	if got := c.want(t, "GET", "/pond/_all_docs?limit=0", "", 200); !strings.Contains(got, `"total_rows":20`) {
		t.Errorf("documents: %s", got)
	}
	c.want(t, "GET", "/pond/frog07", "", 200)
	c.want(t, "GET", "/team%2Fparted/_partition/p", "", 200)
	c.want(t, "GET", "/_users/org.couchdb.user:ann", "", 200)
	security, limit := `{"members":{"names":["ann"]}}`, "7"
	if !settings {
		security, limit = `{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}`, "1000"
	} else if got := c.want(t, "GET", "/_node/_local/_config/mine/a", "", 200); got != `"b"` {
		t.Errorf("a setting is %s", got)
	}
	if got := c.want(t, "GET", "/pond/_security", "", 200); got != security {
		t.Errorf("security object: %s", got)
	}
	if got := c.want(t, "GET", "/pond/_revs_limit", "", 200); got != limit {
		t.Errorf("limit: %s", got)
	}
	c.want(t, "PUT", "/pond/after", `{}`, 201)
	c.want(t, "PUT", "/new", "", 201)
	p.stop()
	checkDirectory(t, dir)
}

// contents returns all that a directory holds.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMetadataGone: the folder of the metadata is empty beside full shards.
func TestMetadataGone(t *testing.T) {
	t.Parallel()
	for _, gone := range [][]string{{"meta"}, {"meta", "recovery"}} {
		t.Run(strings.Join(gone, " and "), func(t *testing.T) {
			dir := pond(t)
			for _, name := range gone {
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			shards := contents(t, filepath.Join(dir, "shards"))
			for range 2 {
				status, out := run(t, adminEnviron(), "serve", "--data", dir, "--listen", "127.0.0.1:0")
				want := dir + "/meta has no metadata, but " + dir + "/shards has 8 shards of 5 databases (_global_changes, _replicator, _users, pond, team/parted)"
				if status != 1 || !strings.Contains(out, want) || !strings.Contains(out, "divan recover "+dir) {
					t.Fatalf("exit status %d, %s", status, out)
				}
				if _, err := os.Stat(filepath.Join(dir, "meta")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a start that was refused leaves a folder in the place of a backup: %v", err)
				}
			}
			if got := contents(t, filepath.Join(dir, "shards")); len(got) != len(shards) {
				t.Errorf("%d files of shards, there were %d", len(got), len(shards))
			}
			status, out := run(t, nil, "check", dir)
			if status != 1 || !strings.Contains(out, "meta: there are no metadata") {
				t.Errorf("check: exit status %d, %s", status, out)
			}
			shards = contents(t, filepath.Join(dir, "shards"))
			status, out = run(t, nil, "recover", dir)
			if notes := strings.Contains(out, "no copy of the metadata was found"); status != 0 || !strings.HasSuffix(out, "metadata of 5 databases were made\n") || notes != (len(gone) > 1) {
				t.Errorf("recover: exit status %d, %s", status, out)
			}
			for name, text := range contents(t, filepath.Join(dir, "shards")) {
				if shards[name] != text {
					t.Errorf("%s was changed", name)
				}
			}
			if status, out = run(t, nil, "recover", dir); status != 1 || !strings.Contains(out, "the metadata are in order") {
				t.Errorf("recover again: exit status %d, %s", status, out)
			}
			wantPond(t, dir, len(gone) == 1)
		})
	}
}

// TestMetadataDamaged: a byte of the log of the metadata is another one. See also
// TestDamagedMetadata of cluster/meta.
func TestMetadataDamaged(t *testing.T) {
	t.Parallel()
	dir := pond(t)
	file := filepath.Join(dir, "meta", "raft.db")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.ReplaceAll(string(text), `{"members":{"names":["ann"]}}`, `{"members":{"names":["ban"]}}`))
	status, out := run(t, adminEnviron(), "serve", "--data", dir, "--listen", "127.0.0.1:0")
	if status != 1 || !strings.Contains(out, "the metadata are damaged: "+dir+"/meta: raft.db: entry") || !strings.Contains(out, "divan recover "+dir) || strings.Contains(out, "goroutine") {
		t.Fatalf("exit status %d, %s", status, out)
	}
	if status, out = run(t, nil, "check", dir); status != 1 || !strings.Contains(out, "meta: raft.db: entry") {
		t.Errorf("check: exit status %d, %s", status, out)
	}
	if status, out = run(t, nil, "recover", dir); status != 0 || !strings.Contains(out, "the metadata from before are in "+dir+"/meta.damaged") {
		t.Errorf("recover: exit status %d, %s", status, out)
	}
	wantPond(t, dir, true)
}

// TestShardGone: the directory of a shard is removed while the node is down.
func TestShardGone(t *testing.T) {
	t.Parallel()
	dir := pond(t)
	lost, err := filepath.Glob(filepath.Join(dir, "shards", "00000000-7fffffff", "pond.*"))
	if err != nil || len(lost) != 1 {
		t.Fatal(lost, err)
	}
	kept := t.TempDir()
	if err := os.Rename(lost[0], filepath.Join(kept, "pond")); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(lost[0], dir+"/")
	if status, out := run(t, nil, "check", dir); status != 1 || !strings.Contains(out, name+": the directory is missing\n") {
		t.Errorf("check: exit status %d, %s", status, out)
	}
	p := startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	refused := wantPartly(t, c)
	if !strings.Contains(p.output(), "files of a shard are gone, and no other node has a copy") || !strings.Contains(p.output(), name) {
		t.Errorf("the log does not say so:\n%s", p.output())
	}
	if got := c.want(t, "GET", "/_node/_local/_lost_shards", "", 200); got != `{"lost":["`+name+`"],"joining":[]}` {
		t.Errorf("lost are %s", got)
	}
	if figures := c.want(t, "GET", "/_node/_local/_prometheus", "", 200); !strings.Contains(figures, "\ncouchdb_lost_shards 1\n") || !strings.Contains(figures, "\ncouchdb_orphaned_shards 0\n") {
		t.Errorf("figures:\n%s", figures)
	}
	p.stop()
	if _, err := os.Stat(lost[0]); err == nil {
		t.Fatal("the directory was made")
	}

	// Put back, all is as it was.
	if err := os.Rename(filepath.Join(kept, "pond"), lost[0]); err != nil {
		t.Fatal(err)
	}
	checkDirectory(t, dir)
	p = startServer(t, adminEnviron(), "--data", dir)
	c = newClient(t, p.address)
	c.want(t, "GET", refused, "", 200)
	if got := c.want(t, "GET", "/_node/_local/_lost_shards", "", 200); got != `{"lost":[],"joining":[]}` {
		t.Errorf("lost are %s", got)
	}
	for _, body := range []string{`{"accept":["` + name + `"]}`, `{"accept":[1]}`, `{"accept":[]}`, `[]`, `{}`} {
		c.want(t, "POST", "/_node/_local/_lost_shards", body, 400)
	}
	c.want(t, "POST", "/_node/_local/_lost_shards", `{"accept":["shards/00000000-7fffffff/lake.1763600000"]}`, 404)
	p.stop()

	// Gone for good.
	if err := os.RemoveAll(lost[0]); err != nil {
		t.Fatal(err)
	}
	p = startServer(t, adminEnviron(), "--data", dir)
	c = newClient(t, p.address)
	wantPartly(t, c)
	c.base = "http://" + p.address
	c.want(t, "POST", "/_node/_local/_lost_shards", `{"accept":["`+name+`"]}`, 401)
	c = newClient(t, p.address)
	c.want(t, "POST", "/_node/_local/_lost_shards", `{"accept":["`+name+`"]}`, 200)
	c.want(t, "GET", refused, "", 404)
	c.want(t, "PUT", refused, "{}", 201)
	c.want(t, "GET", "/pond/_all_docs", "", 200)
	p.stop()
	checkDirectory(t, dir)
}

// TestShardGoneOfAMember: of a node of a cluster a shard is missed that was here, and
// what only the map knows is left to the others.
func TestShardGoneOfAMember(t *testing.T) {
	t.Parallel()
	dir := pond(t)
	holder, err := config.New(config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := meta.New(meta.Options{
		Dir: filepath.Join(dir, "meta"), CopyDir: filepath.Join(dir, "recovery"), Self: meta.Node{Name: "divan@127.0.0.1"}, Config: holder,
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(t.Context()) }()
	if err := m.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.PutNode(t.Context(), meta.Node{Name: "other@127.0.0.1", ClusterVersion: meta.ClusterVersion}), m.Close(), <-ended); err != nil {
		t.Fatal(err)
	}
	checkDirectory(t, dir)
	lost, err := filepath.Glob(filepath.Join(dir, "shards", "00000000-7fffffff", "pond.*"))
	if err != nil || len(lost) != 1 {
		t.Fatal(lost, err)
	}
	if err := os.RemoveAll(lost[0]); err != nil {
		t.Fatal(err)
	}
	status, out := run(t, nil, "check", dir)
	if status != 1 || !strings.Contains(out, strings.TrimPrefix(lost[0], dir+"/")+": the directory is missing\n") {
		t.Errorf("check: exit status %d, %s", status, out)
	}
	if err := os.Remove(filepath.Join(dir, "made")); err != nil {
		t.Fatal(err)
	}
	checkDirectory(t, dir)
}

// wantPartly looks whether one of two ranges of pond is refused and the other one can be
// read. It cannot be written to, as the validation functions of the lost one are unknown.
// It returns the path of a document that is refused.
func wantPartly(t *testing.T, c *client) (refused string) {
	t.Helper()
	count := map[int]int{}
	for i := range 20 {
		path := fmt.Sprintf("/pond/frog%02d", i)
		for _, method := range []string{"GET", "PUT"} {
			status, answer, err := c.do(method, path, "application/json", []byte(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			count[status]++
			if status == http.StatusServiceUnavailable {
				refused = path
				if !strings.Contains(string(answer), "The files of the shard 00000000-7fffffff are missing.") {
					t.Errorf("refused with %s", answer)
				}
			}
		}
	}
	if gets := count[200]; gets == 0 || gets == 20 || count[503] != 40-gets {
		t.Errorf("%v", count)
	}
	c.want(t, "GET", "/pond/_all_docs", "", 503)
	return refused
}

// TestShardsSwapped: the directories of two databases have changed their places.
func TestShardsSwapped(t *testing.T) {
	t.Parallel()
	dir := pond(t)
	one, err := filepath.Glob(filepath.Join(dir, "shards", "00000000-7fffffff", "pond.*"))
	if err != nil || len(one) != 1 {
		t.Fatal(one, err)
	}
	two := strings.Replace(one[0], "00000000-7fffffff", "80000000-ffffffff", 1)
	for _, move := range [][2]string{{one[0], dir + "/other"}, {two, one[0]}, {dir + "/other", two}} {
		if err := os.Rename(move[0], move[1]); err != nil {
			t.Fatal(err)
		}
	}
	status, out := run(t, nil, "check", dir)
	if status != 1 || strings.Count(out, ": The directory is that of another shard.\n") != 2 {
		t.Errorf("check: exit status %d, %s", status, out)
	}
	p := startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	c.want(t, "GET", "/pond/frog01", "", 500)
	c.want(t, "GET", "/team%2Fparted/p:1", "", 200)
	p.stop()
}

// TestReadOnlyDirectory: a directory that cannot be written is not called in use.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	dir := pond(t)
	if err := os.Chmod(filepath.Join(dir, "LOCK"), 0o400); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve", "--data", dir, "--listen", "127.0.0.1:0"}, {"check", dir}} {
		status, out := run(t, adminEnviron(), args...)
		if status != 1 || !strings.HasPrefix(out, "divan: data directory "+dir+" cannot be written: ") {
			t.Errorf("%s: exit status %d, %s", args, status, out)
		}
	}
}

// TestLogDamaged: a byte in the last block of a log is another one, as after a
// kill: what is given up is named by the node and by check.
func TestLogDamaged(t *testing.T) {
	t.Parallel()
	t.Run("small", func(t *testing.T) {
		damageLog(t, 1, func(dir string, _ string) string { return filepath.Join(dir, storage.SmallDir) })
	})
	t.Run("large", func(t *testing.T) { damageLog(t, 5000, func(_ string, shard string) string { return shard }) })
}

// damageLog damages the log that is in a directory. Documents have so many bytes.
func damageLog(t *testing.T, size int, in func(dir, shard string) string) {
	t.Helper()
	dir := t.TempDir()
	p := startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	c.want(t, "PUT", "/pond?q=1", "", 201)
	for i := range 20 {
		c.want(t, "PUT", fmt.Sprintf("/pond/frog%02d", i), fmt.Sprintf(`{"n":%d,"x":"%0*d"}`, i, size, i), 201)
	}
	p.kill()
	p.wait()
	stores, err := filepath.Glob(filepath.Join(dir, "shards", "*", "pond.*"))
	if err != nil || len(stores) != 1 {
		t.Fatal(stores, err)
	}
	log := largest(t, in(dir, stores[0]), ".log")
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	text[len(strings.TrimRight(string(text), "\x00"))-100] ^= 0x53 // one bit would be set right
	write(t, log, string(text))
	broken := t.TempDir()
	if err := os.CopyFS(broken, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	status, out := run(t, nil, "check", broken)
	if status != 1 || !strings.Contains(out, " of the log "+filepath.Base(log)+" cannot be read and were given up: a write that was cut off, or damage\n") {
		t.Errorf("check: exit status %d, %s", status, out)
	}
	p = startServer(t, adminEnviron(), "--data", dir)
	c = newClient(t, p.address)
	c.want(t, "GET", "/pond/frog00", "", 200)
	c.want(t, "GET", "/pond/frog19", "", 404)
	p.stop()
	if !strings.Contains(p.output(), "the end of a log was given up") {
		t.Errorf("the log does not say so:\n%s", p.output())
	}
	checkDirectory(t, dir)
}

// TestLeftoverOfDeleted: the directory of a shard of a database that was deleted comes
// back: that is no problem, as the node removes it.
func TestLeftoverOfDeleted(t *testing.T) {
	t.Parallel()
	dir := pond(t)
	shards, err := filepath.Glob(filepath.Join(dir, "shards", "*", "pond.*"))
	if err != nil || len(shards) != 2 {
		t.Fatal(shards, err)
	}
	left := t.TempDir()
	if err := os.CopyFS(left, os.DirFS(shards[0])); err != nil {
		t.Fatal(err)
	}
	p := startServer(t, adminEnviron(), "--data", dir)
	newClient(t, p.address).want(t, "DELETE", "/pond", "", 200)
	p.stop()
	if err := os.CopyFS(shards[0], os.DirFS(left)); err != nil {
		t.Fatal(err)
	}
	checkDirectory(t, dir)
}

// TestOrphanComesBack: the metadata of a backup are older than a database.
func TestOrphanComesBack(t *testing.T) {
	t.Parallel()
	dir := pond(t)
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(filepath.Join(dir, "meta"))); err != nil {
		t.Fatal(err)
	}
	p := startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	c.want(t, "PUT", "/late?q=2", "", 201)
	c.want(t, "PUT", "/late/a", "{}", 201)
	p.stop()
	for _, name := range []string{"meta", "recovery"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "meta"), os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	status, out := run(t, nil, "check", dir)
	if status != 1 || strings.Count(out, ": no database has this shard; a node would set it aside\n") != 2 {
		t.Errorf("check: exit status %d, %s", status, out)
	}
	late, err := filepath.Glob(filepath.Join(dir, "shards", "*", "late.*"))
	if err != nil || len(late) != 2 {
		t.Fatal(late, err)
	}
	aside := filepath.Join(dir, "shards", ".orphaned", strings.TrimPrefix(late[0], filepath.Join(dir, "shards"))+".1") // of a time before
	if err := os.CopyFS(aside, os.DirFS(late[0])); err != nil {
		t.Fatal(err)
	}
	if _, out = run(t, nil, "check", dir); !strings.Contains(out, "1 shards were set aside in shards/.orphaned; they are not examined\n") {
		t.Errorf("check: %s", out)
	}
	p = startServer(t, adminEnviron(), "--data", dir)
	c = newClient(t, p.address)
	c.want(t, "GET", "/late", "", 404)
	if figures := c.want(t, "GET", "/_node/_local/_prometheus", "", 200); !strings.Contains(figures, "\ncouchdb_orphaned_shards 1\n") {
		t.Errorf("figures:\n%s", figures)
	}
	p.stop()
	status, out = run(t, nil, "recover", dir)
	if status != 0 || !strings.Contains(out, "late: known from its shards only (q=2)") || !strings.HasSuffix(out, "metadata of 6 databases were made\n") {
		t.Errorf("recover: exit status %d, %s", status, out)
	}
	p = startServer(t, adminEnviron(), "--data", dir)
	c = newClient(t, p.address)
	c.want(t, "GET", "/late/a", "", 200)
	if got := c.want(t, "GET", "/pond/_security", "", 200); got != `{"members":{"names":["ann"]}}` {
		t.Errorf("security object: %s", got)
	}
	p.stop()
	checkDirectory(t, dir)
}
