package storage

import (
	"errors"
	"os"

	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/paths"
)

// Drop removes a store with its indexes: it cannot be opened any more. A store
// in use is removed from the disk with its last pin; a crash before that leaves
// it there. The error is fault.NoCopy when there is no such store.
func (e *Engine) Drop(name string) error {
	e.losses.made.Forget(name)
	return e.cache.drop(name, e.moveToStaging)
}

// Orphan sets a store aside that no database names and that was not dropped:
// its files are moved to OrphanedDir, where they stay until an operator removes
// them. Like Drop it waits for all users of the store.
func (e *Engine) Orphan(name string) error {
	err := e.SetAside(name)
	e.losses.made.Forget(name) // a crash before that does no harm: no database names the store
	return err
}

// SetAside is Orphan for a store that is not the one that should be there: that one is
// missed from then on.
func (e *Engine) SetAside(name string) error {
	if err := e.losses.NoteMade([]string{name}); err != nil {
		return err
	}
	e.orphans.Lock()
	e.orphans.names[name] = struct{}{}
	e.orphans.Unlock()
	return e.cache.drop(name, e.moveToStaging)
}

// takeOrphan reports whether SetAside was called for a store that is being dropped, and forgets that.
func (e *Engine) takeOrphan(name string) bool {
	e.orphans.Lock()
	defer e.orphans.Unlock()
	_, orphan := e.orphans.names[name]
	delete(e.orphans.names, name)
	return orphan
}

// moveToStaging moves a store that is not open out of its place, durably, and leaves
// the removal of its files to Run. One that SetAside was called for is set aside.
func (e *Engine) moveToStaging(name string) error {
	if !paths.Valid(name) {
		return noStore()
	}
	path := e.env.path(name)
	files, err := e.env.o.FS.List(path)
	if err == nil {
		_, err = identity.Find(files)
	}
	if errors.Is(err, os.ErrNotExist) || fault.Is(err, fault.NoCopy) {
		return noStore()
	}
	// A store that cannot be read can still be dropped.
	orphan := e.takeOrphan(name)
	out := e.env.setAside
	switch {
	case orphan && e.losses.contents.has(name): // it has nothing to give
	case orphan:
		e.giveOwnFiles(name)
	default:
		out = e.staging.add
		e.losses.made.Forget(name) // also what a creation has noted that ended after Drop began
	}
	if err := out(name); err != nil {
		return err
	}
	e.losses.contents.forget(name)
	e.env.dirs.RemoveParents(name)
	e.uploads.Forget(name)
	return e.indexes.dropAll(name) // before another one of that name can be made
}

// giveOwnFiles gives a small store that is not open an instance of its own, so that what is set
// aside is all in its directory. One that cannot be read is set aside as it is.
func (e *Engine) giveOwnFiles(name string) {
	id, _, err := e.env.readIdentity(name)
	if err != nil || !id.Small {
		return
	}
	m, err := e.openStore(name)
	if err == nil {
		s := m.(*Store)
		_, err = s.writable(true)
		err = errors.Join(err, s.close(false))
		e.cache.uncount(&s.handle)
	}
	if err != nil {
		e.env.log.Warn("what a small shard has stays among the small ones", zap.String("store", name), zap.Error(err))
	}
}
