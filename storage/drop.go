package storage

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/instance"
	"divan/storage/paths"
)

// Drop removes a store with its indexes: it cannot be opened any more. A store
// in use is removed from the disk with its last pin; a crash before that leaves
// it there. The error is fault.NoCopy when there is no such store.
func (e *Engine) Drop(name string) error {
	e.made.Forget(name)
	return e.drop(name, e.moveToStaging)
}

// drop removes a store of any kind; move takes its files out of their place.
func (e *Engine) drop(name string, move func(name string) error) error {
	for {
		e.mu.Lock()
		en := e.mu.entries[name]
		switch {
		case e.mu.closed:
			e.mu.Unlock()
			return errClosed()
		case en == nil:
			en = e.newBusyLocked(name)
			e.mu.Unlock()
			err := move(name)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.removeLocked(en)
			return err
		case en.busy != nil:
			wait := en.busy
			e.mu.Unlock()
			<-wait
		case en.dropped:
			e.mu.Unlock()
			return noStore()
		case en.pins > 0:
			en.dropped = true
			e.mu.Unlock()
			return nil
		default:
			en.dropped = true
			e.takeLocked(en)
			e.mu.Unlock()
			return e.closeStores([]*entry{en})
		}
	}
}

// moveToStaging moves a store that is not open out of its place, durably, and leaves
// the removal of its files to Run. One that Orphan was called for is set aside.
func (e *Engine) moveToStaging(name string) error {
	if !paths.Valid(name) {
		return noStore()
	}
	path := e.path(name)
	files, err := e.o.FS.List(path)
	if err == nil {
		_, err = identity.Find(files)
	}
	if errors.Is(err, os.ErrNotExist) || fault.Is(err, fault.NoCopy) {
		return noStore()
	}
	// A store that cannot be read can still be dropped.
	e.mu.Lock()
	_, orphan := e.mu.orphans[name]
	delete(e.mu.orphans, name)
	e.mu.Unlock()
	out := e.setAside
	switch {
	case orphan && e.contents.has(name): // it has nothing to give
	case orphan:
		e.giveOwnFiles(name)
	default:
		out = e.stage
		e.made.Forget(name) // also what a creation has noted that ended after Drop began
	}
	if err := out(name); err != nil {
		return err
	}
	e.contents.forget(name)
	e.dirs.RemoveParents(name)
	e.uploads.Forget(name)
	return e.dropIndexes(name) // before another one of that name can be made
}

// stage moves a directory to the staging folder, durably.
func (e *Engine) stage(name string) error {
	var unique [12]byte
	_, _ = rand.Read(unique[:]) // never fails
	path := e.path(name)
	if err := e.o.FS.Rename(path, e.path(stagingDir, hex.EncodeToString(unique[:]))); err != nil {
		return fmt.Errorf("drop store %s: %w", name, err)
	}
	// What is swept before that may be there again after a crash, without what it had.
	if err := instance.SyncDir(e.o.FS, e.o.FS.PathDir(path)); err != nil {
		return fmt.Errorf("drop store %s: %w", name, err)
	}
	e.wakeSweep()
	return nil
}

// prepareStaging makes the staging folder; what lies in it is left to Run.
func (e *Engine) prepareStaging() error {
	e.wakeSweep()
	return e.dirs.Ensure(e.path(stagingDir))
}

func (e *Engine) wakeSweep() {
	select {
	case e.sweep <- struct{}{}:
	default:
	}
}

// sweepStaged removes dropped stores from the disk.
func (e *Engine) sweepStaged() {
	names, err := e.o.FS.List(e.path(stagingDir))
	for some := range slices.Chunk(names, maxRemoved) {
		err = errors.Join(err, e.removeStaged(some))
	}
	e.unswept.Store(err != nil)
	if err != nil {
		e.log.Warn("removing dropped stores failed", zap.Error(err))
	}
}

// maxRemoved is how many stores go together.
const maxRemoved = 256

// removeStaged removes directories of dropped stores. That of one that may be small names what it has among the
// small ones, and goes after that.
func (e *Engine) removeStaged(names []string) (err error) {
	var dirs []string
	var uuids [][16]byte
	for _, name := range names {
		dir := e.path(stagingDir, name)
		switch id, _, e2 := identity.Read(e.o.FS, dir); {
		case e2 == nil && id.Small:
			dirs, uuids = append(dirs, dir), append(uuids, id.UUID)
		case errors.Is(e2, syscall.EIO) || errors.Is(e2, syscall.EMFILE) || errors.Is(e2, syscall.ENFILE):
			err = errors.Join(err, e2) // what it names would stay
		default:
			err = errors.Join(err, e.o.FS.RemoveAll(dir))
		}
	}
	if len(uuids) == 0 {
		return err
	}
	if e2 := e.removeSmall(uuids...); e2 != nil {
		return errors.Join(err, e2)
	}
	for _, dir := range dirs {
		err = errors.Join(err, e.o.FS.RemoveAll(dir))
	}
	return err
}
