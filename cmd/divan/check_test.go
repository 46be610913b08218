package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"divan/storage"
)

// TestShardNotMade: a shard that its node was killed before it could make is no problem,
// and is made with the next start; one whose files are gone is a problem, also when
// nothing tells any more which shards there were.
func TestShardNotMade(t *testing.T) {
	t.Parallel()
	dir := pond(t)
	p := startServer(t, adminEnviron(), "--data", dir)
	newClient(t, p.address).want(t, "PUT", "/young?q=2", "", 201)
	p.stop()
	young, err := filepath.Glob(filepath.Join(dir, "shards", "*", "young.*"))
	if err != nil || len(young) != 2 {
		t.Fatal(young, err)
	}
	e, err := storage.NewEngine(storage.Options{Dir: dir, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Drop(filepath.ToSlash(strings.TrimPrefix(young[0], dir+string(filepath.Separator)))); err != nil { // as it never was
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	checkDirectory(t, dir)
	status, out := run(t, nil, "check", dir)
	if status != 0 || strings.Count(out, "is not here and was not noted as made; a node that is killed leaves that, and makes it when it starts (no problem)\n") != 1 {
		t.Errorf("check: exit status %d, %s", status, out)
	}
	p = startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	for _, id := range []string{"a", "b", "c", "d"} {
		c.want(t, "PUT", "/young/"+id, "{}", 201)
	}
	p.stop()
	checkDirectory(t, dir)

	if err := os.RemoveAll(young[1]); err != nil {
		t.Fatal(err)
	}
	missing := filepath.ToSlash(strings.TrimPrefix(young[1], dir+string(filepath.Separator))) + ": the directory is missing\n"
	if status, out := run(t, nil, "check", dir); status != 1 || !strings.Contains(out, missing) {
		t.Errorf("check without a shard: exit status %d, %s", status, out)
	}
	if err := os.Remove(filepath.Join(dir, "made")); err != nil {
		t.Fatal(err)
	}
	if status, out := run(t, nil, "check", dir); status != 1 || !strings.Contains(out, missing) {
		t.Errorf("check that does not know which shards there were: exit status %d, %s", status, out)
	}
}
