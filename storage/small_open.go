package storage

import (
	"errors"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/instance"
	"divan/storage/small"
)

// open opens the instance, while the disk is full for reading, unless a caller is to give space back.
func (h *smallHost) open(mayMake bool) (member, error) {
	readOnly := h.cache.failures.readsOnly(SmallDir)
	if readOnly && !h.env.o.ReadOnly && h.forced.Load() > 0 {
		if s, err := h.openAs(false, mayMake); !fault.Is(err, fault.InsufficientStorage) {
			return s, err
		}
	}
	return h.openAs(readOnly, mayMake)
}

func (h *smallHost) openAs(readOnly, mayMake bool) (member, error) {
	s, err := h.openFiles(readOnly, mayMake)
	if err != nil {
		return nil, err
	}
	h.cache.countOpen(&s.handle, 0)
	return s, nil
}

func (h *smallHost) openFiles(readOnly, mayMake bool) (*smallStores, error) {
	s := &smallStores{handle: h.cache.newHandle(SmallDir, readOnly), ending: make(chan struct{}), closed: make(chan struct{})}
	files, err := h.env.o.FS.List(s.inst.Dir)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		err = instance.DiskError("list small stores", err)
	case instance.IsMade(files):
		err = nil
	case slices.ContainsFunc(files, instance.HoldsKeys):
		err = fault.New(fault.Corruption, "The files of small shards are damaged: the marker of the manifest is missing.")
	case !mayMake:
		err = noStore()
	case s.inst.ReadOnly():
		err = diskspace.ErrDiskFull()
	default:
		h.damage.Begin() // a small store that is open is not in it
		if err = h.env.dirs.Make(s.inst.Dir); err == nil {
			err = h.env.markFormat(s.inst.Dir)
		}
		if err != nil {
			err = instance.DiskError("make small stores", err)
		}
	}
	if err == nil {
		err = s.inst.Open(small.Kind(), func(*pebble.DB) error { return nil })
	}
	if err == nil && !s.inst.ReadOnly() {
		small.RemoveLeft(h.env.o.FS, s.inst.Dir, files)
		h.mendOpened(s)
		err = s.Err()
	}
	if err != nil {
		if e2 := s.close(false); e2 != nil {
			err = errors.Join(err, e2)
		}
		return nil, err
	}
	return s, nil
}
