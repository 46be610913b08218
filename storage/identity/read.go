package identity

import (
	"errors"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/fault"
	"divan/storage/instance"
)

// Read returns what is fixed about the store in a directory, and its files. The error is
// fault.NoCopy when there is none.
func Read(fs vfs.FS, dir string) (id Identity, files []string, err error) {
	files, err = fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return id, nil, fault.New(fault.NoCopy, "no_db_file")
	}
	if err != nil {
		return id, nil, err
	}
	id, err = Find(files)
	return id, files, err
}

// LeaveSmall notes in the directory of a store that all that it has is in files of its own;
// durable on return.
func LeaveSmall(fs vfs.FS, dir, store string) error {
	id, _, err := Read(fs, dir)
	if err == nil {
		err = id.Check(store)
	}
	if err != nil {
		return err
	}
	if id.Small {
		old := fs.PathJoin(dir, id.FileName())
		id.Small = false
		if err := fs.Rename(old, fs.PathJoin(dir, id.FileName())); err != nil {
			return err
		}
	}
	return instance.SyncDir(fs, dir) // also of a name that an earlier call could not sync
}

// Make makes a directory with the file that makes it a store, durably.
func (id Identity) Make(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := fs.Create(fs.PathJoin(dir, id.FileName()), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := instance.SyncDir(fs, dir); err != nil {
		return err
	}
	return instance.SyncDir(fs, fs.PathDir(dir))
}
