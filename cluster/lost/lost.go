// Package lost keeps account of the copies of this node that are gone although they were never
// dropped and that no other node has, and of the directories that belong to no database. Nothing is
// removed, and nothing made in its place, until an operator says so.
package lost

import (
	"context"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"

	"divan/shard"
	"divan/storage"
	"divan/storage/fault"
)

// Register is the lost copies of a node. It is safe for concurrent use.
type Register struct {
	shards *shard.Copies
	log    *zap.Logger
	mu     sync.Mutex
	names  map[string]struct{}

	droppedCopies
}

// NewRegister returns a register without copies.
func NewRegister(shards *shard.Copies, log *zap.Logger) *Register {
	return &Register{shards: shards, log: log, names: make(map[string]struct{})}
}

// Names returns the copies that are known to be lost, sorted.
func (r *Register) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.names))
}

// Note notes that a copy is lost.
func (r *Register) Note(name string) {
	r.mu.Lock()
	_, known := r.names[name]
	r.names[name] = struct{}{}
	r.mu.Unlock()
	if !known {
		r.log.Error("files of a shard are gone, and no other node has a copy: requests for it are refused until they are back or the loss is accepted",
			zap.String("copy", name))
	}
}

// Miss notes that a copy was here, so that it is missed when it is not.
func (r *Register) Miss(name string) error { return r.shards.NoteMade([]string{name}) }

// Forget ends the missing of a copy whose database was deleted.
func (r *Register) Forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, name)
}

// Listed tells which copies are on the disk, and which should be and are not.
// The first are missed when they go; of those that were lost, only the second
// still are.
func (r *Register) Listed(there, missing []string) {
	if err := r.shards.NoteMade(there); err != nil {
		r.log.Warn("the copies on disk are not written down, so that they would not be missed", zap.Error(err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.names, func(name string, _ struct{}) bool { return !slices.Contains(missing, name) })
}

// Has reports whether a copy was here once and is gone.
func (r *Register) Has(name string) bool { return r.shards.Lost(name) }

// Accept makes a lost copy again, empty: what it held is given up. The error is
// fault.BadRequest when it is not lost.
func (r *Register) Accept(ctx context.Context, name string, o shard.CreateOptions) error {
	if !r.shards.Lost(name) {
		return fault.Newf(fault.BadRequest, "The files of %s are not missing on this node.", name)
	}
	if err := r.shards.AcceptLoss(ctx, name, o); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.names, name)
	r.mu.Unlock()
	r.log.Warn("the loss of a shard was accepted: it is empty now", zap.String("copy", name))
	return nil
}

// Orphan moves a directory out of the way that is none of the copies that this node is to have, and
// of which no deletion was seen.
func (r *Register) Orphan(ctx context.Context, name string) {
	r.told(name, "it belongs to no database", r.shards.Orphan(ctx, name))
}

// SetAside moves a directory out of the way that is not the copy that should be there.
// The copy is lost from then on. It returns false when that cannot be done yet.
func (r *Register) SetAside(ctx context.Context, name, why string) bool {
	err := r.shards.SetAside(ctx, name)
	r.told(name, why, err)
	return err == nil || fault.Is(err, fault.NoCopy)
}

// told logs what came of moving a directory out of the way.
func (r *Register) told(name, why string, err error) {
	switch {
	case err == nil:
		r.log.Warn("directory of a shard was set aside", zap.String("copy", name), zap.String("why", why), zap.String("below", storage.OrphanedDir))
	case !fault.Is(err, fault.NoCopy):
		r.log.Warn("directory of a shard could not be set aside yet", zap.String("copy", name), zap.String("why", why), zap.Error(err))
	}
}
