package view

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/script"
	"divan/shard/view"
	"divan/storage"
)

// newCopy returns a node's copies, in memory, with one that is empty, and the indexes.
func newCopy(t *testing.T) (*shard.Local, *view.Views) {
	t.Helper()
	engine, err := storage.NewEngine(storage.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	l := shard.New(shard.Options{Engine: engine})
	if err := l.Copies.Create(t.Context(), testCopy, shard.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	scripts := script.New(script.Options{})
	manager := index.New(index.Options{Engine: engine, Shards: l})
	views := view.New(view.Options{Indexes: manager, Shards: l, Scripts: scripts})
	t.Cleanup(func() {
		for _, c := range []func() error{manager.Close, scripts.Close, l.Close, engine.Close} {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
	})
	return l, views
}
