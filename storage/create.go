package storage

import (
	"errors"
	"fmt"
	"os"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/instance"
	"divan/storage/paths"
)

// Create makes an empty store; it is durable on return. The error is
// fault.Exists when there is one of that name.
func (e *Engine) Create(name string, o CreateOptions) error {
	if !paths.Valid(name) {
		return fmt.Errorf("store name %q is no path below the data directory", name)
	}
	en, err := e.cache.addBusy(name)
	if err != nil {
		return err
	}
	defer e.cache.remove(en)
	return e.create(name, o)
}

func (e *Engine) create(name string, o CreateOptions) error {
	path := e.env.path(name)
	files, err := e.env.o.FS.List(path)
	if err == nil {
		if _, err = identity.Find(files); err == nil {
			return fault.New(fault.Exists, "file_exists")
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) && !fault.Is(err, fault.NoCopy) {
		return fmt.Errorf("create store %s: %w", name, err)
	}
	id := identity.New(name, o.CopyID, o.Partitioned)
	if id.Small = o.Small; id.Small {
		shared, err := e.small.add(id.UUID)
		switch {
		case err == nil:
			defer e.cache.release(&shared.handle)
		case fault.Is(err, fault.Corruption):
			id.Small = false // the files of small stores stay where they are, for an operator to mend
		default:
			return instance.DiskError("create store "+name, err)
		}
	}
	defer e.env.dirs.Hold()()
	if err = e.env.dirs.Ensure(e.env.o.FS.PathDir(path)); err == nil {
		err = id.Make(e.env.o.FS, path)
	}
	if err != nil {
		if _, e2 := e.env.o.FS.Stat(path); id.Small && errors.Is(e2, os.ErrNotExist) {
			err = errors.Join(err, e.small.remove(id.UUID))
		}
		return instance.DiskError("create store "+name, err)
	}
	_ = e.losses.made.Note(name) // else NoteMade does
	return nil
}
