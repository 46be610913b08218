package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// CompactRequest asks for a compaction.
type CompactRequest struct {
	Copy   string
	Limits shard.Limits
	DB     string // for the list of tasks
}

// Compact starts a compaction, unless one is running.
var Compact = declare(Operation[CompactRequest, Done]{
	Copy:  func(q CompactRequest) string { return q.Copy },
	Needs: Present,
	Run: func(h Admitted, ctx context.Context, q CompactRequest) (Done, error) {
		return Done{}, h.Shards.Compactions.Start(ctx, q.Copy, q.Limits, q.DB)
	},
	Over: unary(wirepb.Op_COMPACT, wire.ClassWrite,
		codec[CompactRequest, *wirepb.CompactRequest]{
			func(q *CompactRequest) *wirepb.CompactRequest {
				return &wirepb.CompactRequest{Copy: q.Copy, Limits: encodeLimits(q.Limits), Db: q.DB}
			},
			func(m *wirepb.CompactRequest) CompactRequest {
				return CompactRequest{name(m.Copy), decodeLimits(m.Limits), name(m.Db)}
			},
		}, doneCodec()),
})
