package storage

import (
	"errors"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/records"
	"divan/storage/small"
)

// readSmall reads what the store has among the small ones, nil when it has no batch there. What is damaged
// and can be mended is, first.
func (s *Store) readSmall() (v *small.View, err error) {
	v, err = s.readSmallOnce()
	if fault.Is(err, fault.Corruption) && s.host.mendDamaged() {
		v, err = s.readSmallOnce()
	}
	if fault.Is(err, fault.Corruption) && s.host.ends() { // nothing is lost before that
		err = errSmallEnds
	}
	if errors.Is(err, syscall.EIO) {
		s.host.noteUnread()
	}
	return v, err
}

func (s *Store) readSmallOnce() (v *small.View, err error) {
	empty, err := s.env.emptyDB()
	if err != nil {
		return nil, err
	}
	there := false
	err = s.host.with(func(db *pebble.DB) error {
		v, there, err = small.Read(db, empty, s.id.UUID)
		return err
	})
	if fault.Is(err, fault.NoCopy) || err == nil && !there {
		err = errMissingSmall()
	}
	return v, err
}

// FileSize is that of its instance, or the bytes that it has among the small ones.
func (s *Store) FileSize() (int64, error) {
	if v := s.small.Load(); v != nil {
		return int64(v.Len()), s.Err()
	}
	return s.handle.FileSize()
}

// isSmall reports whether batches of the store go among the small ones, as far as is known without s.opening.
func (s *Store) isSmall() bool {
	return s.mayBeSmall.Load() && (!s.inst.Opened() || s.small.Load() != nil)
}

// reader returns what the store is read from.
func (s *Store) reader() pebble.Reader {
	if v := s.small.Load(); v != nil {
		return v
	}
	return s.inst.DB()
}

// hold has the store be read from a view, and stay open by its weight.
func (s *Store) hold(v *small.View) {
	was := s.small.Swap(v)
	if w := v.Weight(); was == nil || w != was.Weight() {
		s.cache.countOpen(&s.handle, w)
	}
}

// bringSmall brings what the store has among the small ones into its own instance, which is being
// opened, durably, and returns the reader to use. v is the view that an open store is read from;
// a store that is being opened reads it from the small ones. A crash before the end is followed
// by another call.
func (s *Store) bringSmall(db *pebble.DB, v *small.View) (pebble.Reader, error) {
	if batch, _, err := records.Counters(db); err != nil || batch > 0 || !s.mayBeSmall.Load() {
		return db, err // it is there
	}
	if !s.attached {
		var err error
		if v, err = s.readSmall(); err != nil {
			return nil, err
		}
	}
	switch {
	case v == nil:
		return db, nil
	case s.inst.ReadOnly():
		s.small.Store(v)
		return v, nil
	}
	b := db.NewBatch()
	if err := v.AddTo(b); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return db, errors.Join(b.Commit(pebble.Sync), b.Close(), s.Err())
}

// leaveSmall ends that a store is among the small ones: all that it has is in its own instance, and the
// name of its marker says so from now on. Where the disk refuses that, it is done when the store
// is opened again.
func (s *Store) leaveSmall() {
	s.small.Store(nil)
	var err error
	written := s.states.Load().prev.batch > 0 // so that what it has is found in its own instance when it is opened again
	if written {
		err = s.host.remove(s.id.UUID)
	}
	if err == nil {
		err = identity.LeaveSmall(s.env.o.FS, s.inst.Dir, s.name)
	}
	if err == nil {
		s.mayBeSmall.Store(false)
		if !written {
			err = s.host.remove(s.id.UUID)
		}
	}
	if err != nil {
		s.log.Warn("a shard with files of its own is among the small ones still", zap.Error(err))
	}
}
