// Package export writes what one store holds into a pack of a backup, and restores an empty store
// from packs. It knows the entries of one shard; which copy is taken, when, and what names the
// entries is decided above.
package export

import (
	"context"

	"divan/storage/fault"
)

// Pace returns when so many bytes more may be read. When it is nil, they may be at once.
type Pace func(ctx context.Context, bytes int) error

// wait calls the pace, if there is one.
func (p Pace) wait(ctx context.Context, bytes int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p == nil {
		return nil
	}
	return p(ctx, bytes)
}

func damaged(what string) error {
	return fault.New(fault.Corruption, "The backup is damaged: "+what+".")
}
