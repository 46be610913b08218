package storage

import (
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

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
	en, err := e.addBusy(name)
	if err != nil {
		return err
	}
	err = e.create(name, o)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.removeLocked(en)
	return err
}

// addBusy makes a busy entry for a store that is not open.
func (e *Engine) addBusy(name string) (*entry, error) {
	for {
		e.mu.Lock()
		en := e.mu.entries[name]
		switch {
		case e.mu.closed:
			e.mu.Unlock()
			return nil, errClosed()
		case en == nil:
			en = e.newBusyLocked(name)
			e.mu.Unlock()
			return en, nil
		case en.busy == nil:
			e.mu.Unlock()
			return nil, fault.New(fault.Exists, "file_exists")
		}
		wait := en.busy
		e.mu.Unlock()
		<-wait
	}
}

func (e *Engine) create(name string, o CreateOptions) error {
	path := e.path(name)
	files, err := e.o.FS.List(path)
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
		shared, err := e.addSmall(id.UUID)
		switch {
		case err == nil:
			defer e.release(&shared.handle)
		case fault.Is(err, fault.Corruption):
			id.Small = false // the files of small stores stay where they are, for an operator to mend
		default:
			return instance.DiskError("create store "+name, err)
		}
	}
	defer e.dirs.Hold()()
	if err = e.dirs.Ensure(e.o.FS.PathDir(path)); err == nil {
		err = id.Make(e.o.FS, path)
	}
	if err != nil {
		if _, e2 := e.o.FS.Stat(path); id.Small && errors.Is(e2, os.ErrNotExist) {
			err = errors.Join(err, e.removeSmall(id.UUID))
		}
		return instance.DiskError("create store "+name, err)
	}
	_ = e.made.Note(name) // else NoteMade does
	return nil
}

// touch makes an empty file, durable with its directory.
func (e *Engine) touch(path string) error {
	f, err := e.o.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return f.Close()
}
