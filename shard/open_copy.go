package shard

import (
	"context"

	"divan/storage"
)

// OpenCopy is a copy that one request has opened: its store stays open, and its
// directory does not become that of another copy, until Close. A write has one from its
// admission to its answer. Its own goroutine reads from the store, and the writer and
// the finisher of the copy use it for the group that the request is in, as the request
// is answered after them; a group with a request that is answered before it is durable
// (Delayed) pins the store for itself. The zero value is no copy.
type OpenCopy struct {
	states *copyStates
	store  *storage.Store
}

// Open opens a copy until OpenCopy.Close. The error is fault.NoCopy when it is not
// there.
func (c *Copies) Open(ctx context.Context, name string) (OpenCopy, error) {
	return c.states.open(ctx, name)
}

func (s *copyStates) open(ctx context.Context, name string) (OpenCopy, error) {
	store, err := s.pin(ctx, name)
	if err != nil {
		return OpenCopy{}, err
	}
	return OpenCopy{s, store}, nil
}

// ID returns which copy of its database the directory says that it is.
func (o OpenCopy) ID() uint64 { return o.store.CopyID() }

// Close lets go of the copy; of none it does nothing.
func (o OpenCopy) Close() {
	if o.store != nil {
		o.states.engine.Release(o.store)
	}
}
