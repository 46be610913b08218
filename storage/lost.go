package storage

import (
	"errors"
	"strings"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/instance"
)

// ErrLost is the cause of an error that says that a store was there once and is
// gone, although it was not dropped. Compare with errors.Is.
var ErrLost = errors.New("the store was here and is gone")

// errLost returns the error for a store that is lost. name is below shards.
func errLost(name string) error {
	r, _, _ := strings.Cut(strings.TrimPrefix(name, shardsDir+"/"), "/")
	return fault.Wrap(fault.Unavailable, "The files of the shard "+r+" are missing.", ErrLost)
}

// Lost reports whether a store, or its content, was here once and is gone, although it was
// not dropped.
func (e *Engine) Lost(name string) bool {
	return !e.Has(name) && (e.made.Has(name) || e.contents.has(name))
}

// NeverMade reports whether a store is not here and never was: a node that is killed
// while it makes a database leaves that. False also where it is not known which stores
// were here.
func (e *Engine) NeverMade(name string) bool {
	return e.made.Any() && !e.made.Has(name) && !e.Has(name)
}

// NoteMade notes that stores are here, of those that were listed. What is not
// noted is not missed when it goes.
func (e *Engine) NoteMade(names []string) error {
	for _, name := range names {
		if err := e.made.Note(name); err != nil {
			return instance.DiskError("note which stores are here", err)
		}
	}
	return nil
}

// ForgetLost ends the missing of a store that is lost, so that it can be made
// again, empty. What is left of its directory is set aside.
func (e *Engine) ForgetLost(name string) error {
	en, err := e.addBusy(name)
	if err != nil {
		return err
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.removeLocked(en)
	}()
	switch _, _, err := e.readIdentity(name); {
	case fault.Is(err, fault.NoCopy):
		if _, err := e.o.FS.Stat(e.path(name)); err == nil {
			if err := e.setAside(name); err != nil {
				return err
			}
			e.dirs.RemoveParents(name)
		}
	default: // it is there, or that is not known
		return errors.Join(fault.New(fault.Exists, "file_exists"), err)
	}
	e.made.Forget(name)
	return nil
}

// readIdentity reads what is fixed about a store that need not be open, and its
// files. The error is fault.NoCopy when there is none.
func (e *Engine) readIdentity(name string) (id identity.Identity, files []string, err error) {
	id, files, err = identity.Read(e.o.FS, e.path(name))
	if err != nil {
		err = instance.DiskError("read store", err)
	}
	return id, files, err
}

// Orphan sets a store aside that no database names and that was not dropped:
// its files are moved to OrphanedDir, where they stay until an operator removes
// them. Like Drop it waits for all users of the store.
func (e *Engine) Orphan(name string) error {
	err := e.SetAside(name)
	e.made.Forget(name) // a crash before that does no harm: no database names the store
	return err
}

// SetAside is Orphan for a store that is not the one that should be there: that one is
// missed from then on.
func (e *Engine) SetAside(name string) error {
	if err := e.NoteMade([]string{name}); err != nil {
		return err
	}
	e.mu.Lock()
	e.mu.orphans[name] = struct{}{}
	e.mu.Unlock()
	return e.drop(name, e.moveToStaging)
}

// OrphanedDir is where stores lie that were set aside, below the data directory.
const OrphanedDir = shardsDir + "/" + orphanedName

const orphanedName = ".orphaned"

// setAside moves a directory to OrphanedDir, durably, under the name that it has
// below shards.
func (e *Engine) setAside(name string) error {
	if err := e.dirs.MoveBelow(name, OrphanedDir+strings.TrimPrefix(name, shardsDir)); err != nil {
		return instance.DiskError("set aside store "+name, err)
	}
	return nil
}

// Orphans returns the names of the directories in OrphanedDir that are stores.
func (e *Engine) Orphans() ([]string, error) {
	stores, err := e.dirs.Stores(OrphanedDir, "")
	return namesOf(stores), err
}
