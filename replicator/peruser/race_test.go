package peruser

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/replicator/ownership"
	"divan/shard"
	"divan/storage"
	"divan/storage/doc"
)

// newKeeper returns the Keeper of a node of its own that deletes databases, the turn in
// which it is to, and what ends the node.
func newKeeper(t *testing.T) (k *Keeper, now turn, end func()) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	run := func(f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	settings, err := config.New(config.Options{})
	must(err)
	settings.SetVolatile("couch_peruser", "enable", "true")
	settings.SetVolatile("couch_peruser", "delete_dbs", "true")
	engine, err := storage.NewEngine(storage.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20})
	must(err)
	local := shard.New(shard.Options{Engine: engine})
	group, err := meta.New(meta.Options{Self: meta.Node{Name: "n@host"}, Bootstrap: true, Config: settings})
	must(err)
	run(group.Run)
	must(group.WaitReady(ctx))
	coordinator, err := cluster.New(cluster.Options{NodeName: group.Self(), Meta: group, Config: settings, Local: local, Logger: zap.NewNop()})
	must(err)
	run(coordinator.Run)
	owners := ownership.New(ownership.Options{Meta: group})
	run(owners.Run)
	k = New(Options{Coordinator: coordinator, Meta: group, Config: settings, Owners: owners, Logger: zap.NewNop()})
	for now = k.turn(); !now.active(); now = k.turn() {
		<-owners.Changed()
	}
	must(coordinator.CreateDB(ctx, now.accounts, cluster.CreateOptions{}))
	return k, now, func() {
		must(coordinator.Close())
		cancel()
		running.Wait()
		must(local.Close())
		must(engine.Close())
	}
}

// TestDropsWhatWasSeen: between a look at an account that is deleted and the deletion of its
// database the one or the other may be made again; what is made again stays.
func TestDropsWhatWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, now, end := newKeeper(t)
		defer end()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, name := t.Context(), databaseOf(now.settings.Prefix, "ann")
		var rev doc.Rev
		write := func(deleted bool) {
			t.Helper()
			must(k.o.Coordinator.Do(ctx, now.accounts, func(d *cluster.DB) error {
				edit := shard.Edit{ID: userPrefix + "ann", Parent: rev, Deleted: deleted, Body: []byte(`{}`)}
				done, err := d.Update(ctx, cluster.UpdateOptions{NewEdits: true}, []shard.Edit{edit})
				if err == nil {
					rev, err = done[0].Rev, done[0].Err
				}
				if deleted {
					rev = doc.Rev{}
				}
				return err
			}))
		}
		write(false)
		must(k.look(ctx, now, "ann", true))
		first, ok := k.o.Meta.Database(name)
		if !ok {
			t.Fatal("no database")
		}

		write(true)
		write(false) // behind the look at the deletion
		must(k.settle(ctx, now, "ann", first))
		if db, ok := k.o.Meta.Database(name); !ok || db.ID != first.ID {
			t.Fatal("the database of an account that is back is deleted")
		}

		write(true)
		must(k.o.Coordinator.DeleteDB(ctx, name))
		must(k.o.Coordinator.CreateDB(ctx, name, cluster.CreateOptions{}))
		second, _ := k.o.Meta.Database(name)
		must(k.settle(ctx, now, "ann", first))
		must(k.settle(ctx, now, "ann", nil))
		if db, ok := k.o.Meta.Database(name); !ok || db.ID != second.ID {
			t.Fatal("a database that was made meanwhile is deleted")
		}
		if err := k.secure(ctx, first, []byte(`{}`)); err == nil {
			t.Error("a database has the security object of another one")
		}
		must(k.look(ctx, now, "ann", false))
		if _, ok := k.o.Meta.Database(name); ok || k.Figures().Deleted != 1 {
			t.Errorf("the database of a deleted account stays: %+v", k.Figures())
		}
	})
}
