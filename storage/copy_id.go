package storage

import (
	"errors"
	"fmt"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/instance"
)

// CopyID returns which copy of its database the store is; 0: it does not say.
func (s *Store) CopyID() uint64 { return s.copyID.Load() }

// CopyID is Store.CopyID of a store that need not be open.
func (e *Engine) CopyID(name string) (uint64, error) {
	id, _, err := e.readIdentity(name)
	return id.Copy, errors.Join(err, id.Check(name))
}

// SetCopyID writes into a store that does not say which copy of its database it is that
// it is the one with that id; durable on return. The error is fault.Exists when the
// store says another.
func (e *Engine) SetCopyID(name string, copyID uint64) error {
	en, err := e.addBusy(name)
	if err == nil {
		err = e.setCopyID(name, copyID)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.removeLocked(en)
		return err
	}
	if !fault.Is(err, fault.Exists) {
		return err
	}
	s, err := e.Acquire(name) // it is open
	if err != nil {
		return err
	}
	defer e.Release(s)
	if err = e.setCopyID(name, copyID); err == nil {
		s.copyID.Store(copyID)
	}
	return err
}

func (e *Engine) setCopyID(name string, copyID uint64) error {
	if err := identity.SetCopy(e.o.FS, e.path(name), name, copyID); err != nil {
		return instance.DiskError(fmt.Sprintf("write down which copy %s is", name), err)
	}
	return nil
}
