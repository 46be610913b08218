package storage

import (
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/storage/diskspace"
	"divan/storage/format"
	"divan/storage/identity"
	"divan/storage/instance"
	"divan/storage/paths"
	"divan/storage/scheduler"
)

// environment has the options, the data directory and the resources of instances, which the parts
// of an engine and its stores share. Its fields are set once; each is safe for concurrent use by
// itself.
type environment struct {
	o      Options
	log    *zap.Logger
	dirs   paths.Tree
	shared instance.Shared
	space  diskspace.Space
	empty  instance.Empty // what a store without a write reads from
	syncs  syncs
}

func (env *environment) init(o Options) {
	env.o, env.log = o, o.Logger
	env.dirs.FS, env.dirs.Root = o.FS, o.Dir
	env.space.FS, env.space.Dir, env.space.Log = o.FS, o.Dir, o.Logger
	env.shared = instance.Shared{
		FS: o.FS, Memory: instance.NewMemoryBudget(o.CacheBytes, o.MaxOpen),
		Files:        pebble.NewFileCache(compactionSlots(), o.MaxTables),
		Scheduler:    scheduler.New(compactionSlots()),
		SyncInterval: env.syncs.interval, Compression: o.Compression,
		TableSpace: env.space.TableSpace, Pending: env.space.Pending,
	}
	env.space.Hold = env.shared.Scheduler.HoldDerived
}

// close gives back what instances share; none may be open.
func (env *environment) close() {
	env.shared.Files.Unref()
	env.shared.Memory.Close()
}

// path returns the path of a name below the data directory.
func (env *environment) path(elem ...string) string { return env.dirs.Path(elem...) }

// emptyDB returns the instance without a key.
func (env *environment) emptyDB() (*pebble.DB, error) {
	return env.empty.DB(&env.shared, format.SumsMerger())
}

// readIdentity reads what is fixed about a store that need not be open, and its
// files. The error is fault.NoCopy when there is none.
func (env *environment) readIdentity(name string) (id identity.Identity, files []string, err error) {
	id, files, err = identity.Read(env.o.FS, env.path(name))
	if err != nil {
		err = instance.DiskError("read store", err)
	}
	return id, files, err
}

// setAside moves a directory to OrphanedDir, durably, under the name that it has
// below shards.
func (env *environment) setAside(name string) error {
	if err := env.dirs.MoveBelow(name, OrphanedDir+strings.TrimPrefix(name, shardsDir)); err != nil {
		return instance.DiskError("set aside store "+name, err)
	}
	return nil
}

// markFormat makes the file that says in which format a directory is; see formatMarker.
func (env *environment) markFormat(dir string) error {
	return env.touch(env.o.FS.PathJoin(dir, formatMarker+instance.PebbleFormat.String()))
}

// touch makes an empty file, durable with its directory.
func (env *environment) touch(path string) error {
	f, err := env.o.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return f.Close()
}
