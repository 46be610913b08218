package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// CreateRequest asks for a copy of a new database, empty and complete. What
// another node says about the state of the copy does not count.
type CreateRequest struct {
	Copy        string
	ID          uint64 // of the copy in the map
	Partitioned bool
}

// Create makes a copy of a new database; fault.Exists when it is there.
var Create = declare(Operation[CreateRequest, Done]{
	Copy:  func(q CreateRequest) string { return q.Copy },
	Needs: Present, Unheld: true,
	Run: func(h *Held, ctx context.Context, q CreateRequest) (Done, error) {
		return Done{}, h.Shards.Copies.Create(ctx, q.Copy, shard.CreateOptions{ID: q.ID, Partitioned: q.Partitioned})
	},
	Over: unary(wirepb.Op_CREATE, wire.ClassWrite,
		codec[CreateRequest, *wirepb.CreateRequest]{
			func(q *CreateRequest) *wirepb.CreateRequest {
				return &wirepb.CreateRequest{Copy: q.Copy, CopyId: q.ID, Partitioned: q.Partitioned}
			},
			func(m *wirepb.CreateRequest) CreateRequest {
				return CreateRequest{name(m.Copy), m.CopyId, m.Partitioned}
			},
		}, doneCodec()),
})

// Drop removes a copy with everything in it.
var Drop = declare(Operation[string, Done]{
	Copy:  copyName,
	Needs: Dropped, Unheld: true,
	Run: func(h *Held, ctx context.Context, copyName string) (Done, error) {
		if h.Dropped != nil {
			h.Dropped(copyName)
		}
		return Done{}, h.Shards.Copies.Drop(ctx, copyName)
	},
	Over: unary(wirepb.Op_DROP, wire.ClassWrite, copyCodec(), doneCodec()),
})
