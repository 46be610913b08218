package storage

import (
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/fault"
	"divan/storage/instance"
	"divan/storage/paths"
	"divan/storage/small"
)

// FindLost looks which small stores have lost what they held. Others say so when they are opened.
func (e *Engine) FindLost(ctx context.Context) error {
	stores, err := e.env.dirs.Stores(shardsDir, OrphanedDir)
	if err != nil {
		return instance.DiskError("list shards", err)
	}
	stores = slices.DeleteFunc(stores, func(s paths.Store) bool { return !s.Small })
	if len(stores) == 0 {
		return nil
	}
	var suspects []string
	err = e.small.with(func(db *pebble.DB) error {
		for i := range stores {
			if there, err := small.Has(db, stores[i].UUID); !there || err != nil {
				suspects = append(suspects, stores[i].Name)
			}
		}
		return ctx.Err()
	})
	if fault.Is(err, fault.NoCopy) || fault.Is(err, fault.Corruption) {
		suspects, err = namesOf(stores), nil
	}
	for _, name := range suspects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s, err := e.Acquire(name); err == nil {
			e.Release(s)
		}
	}
	return err
}
