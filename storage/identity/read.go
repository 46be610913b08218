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

// SetCopy writes into the directory of a store that does not say which copy of its
// database it is that it is the one with that id; durable on return. The error is
// fault.Exists when it says another.
func SetCopy(fs vfs.FS, dir, store string, copyID uint64) error {
	id, files, err := Read(fs, dir)
	if err == nil {
		err = id.Check(store)
	}
	switch {
	case err != nil || id.Copy == copyID:
		return err
	case id.Copy != 0:
		return fault.Newf(fault.Exists, "The directory of %s is that of copy %d.", store, id.Copy)
	}
	for _, f := range files {
		if f == id.FileName() {
			err = fs.Rename(fs.PathJoin(dir, f), fs.PathJoin(dir, id.Of(store, copyID).FileName()))
		}
	}
	if err != nil {
		return err
	}
	return instance.SyncDir(fs, dir)
}

// AllowBlocks notes in the directory of a store that its histories may lie in blocks;
// durable on return. The store says which copy it is.
func AllowBlocks(fs vfs.FS, dir, store string) error {
	return rename(fs, dir, store, func(id *Identity) { id.Blocks = true })
}

// LeaveSmall notes in the directory of a store that all that it has is in files of its own;
// durable on return.
func LeaveSmall(fs vfs.FS, dir, store string) error {
	return rename(fs, dir, store, func(id *Identity) { id.Small = false })
}

// rename changes what the name of the file says, durably. The store says which copy it is.
func rename(fs vfs.FS, dir, store string, change func(id *Identity)) error {
	id, _, err := Read(fs, dir)
	if err == nil {
		err = id.Check(store)
	}
	if err == nil && id.Copy == 0 {
		err = fault.Newf(fault.Corruption, "The directory of %s does not say which copy it is.", store)
	}
	if err != nil {
		return err
	}
	old := id.FileName()
	if change(&id); old != id.FileName() {
		if err := fs.Rename(fs.PathJoin(dir, old), fs.PathJoin(dir, id.FileName())); err != nil {
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
