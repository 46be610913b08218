package shard

import (
	"context"

	"divan/storage"
)

// Hold keeps the directory of a copy from becoming that of another one.
type Hold struct {
	engine *storage.Engine
	store  *storage.Store
}

// Hold holds a copy until End. The error is fault.NoCopy when it is not there.
func (l *Local) Hold(ctx context.Context, name string) (Hold, error) {
	s, err := l.pin(ctx, name)
	if err != nil {
		return Hold{}, err
	}
	return Hold{l.engine, s}, nil
}

// ID returns which copy of its database the directory says that it is; 0: it does not
// say.
func (h Hold) ID() uint64 { return h.store.CopyID() }

// End ends the hold; that of none does nothing.
func (h Hold) End() {
	if h.store != nil {
		h.engine.Release(h.store)
	}
}

// CopyID returns which copy of its database a directory says that it is, without
// opening it; 0: it does not say.
func (l *Local) CopyID(name string) (uint64, error) { return l.engine.CopyID(name) }

// SetCopyID has a directory that does not say which copy it is say so, durably.
func (l *Local) SetCopyID(name string, id uint64) error { return l.engine.SetCopyID(name, id) }
