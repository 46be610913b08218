package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// Follow takes over what another copy has decided. An incomplete copy does it too.
var Follow = declare(Operation[shard.FollowRequest, []error]{
	Copy:  func(q shard.FollowRequest) string { return q.Copy },
	Needs: Present, Counted: true, Writes: true,
	Run: func(h Admitted, ctx context.Context, q shard.FollowRequest) ([]error, error) {
		q.Open = h.Open
		return h.Shards.Follow(ctx, q)
	},
	Over: unary(wirepb.Op_FOLLOW, wire.ClassWrite,
		codec[shard.FollowRequest, *wirepb.FollowRequest]{
			func(q *shard.FollowRequest) *wirepb.FollowRequest {
				return &wirepb.FollowRequest{
					Copy: q.Copy, Edits: encodeList(q.Edits, encodeEdit), RevsLimit: int64(q.RevsLimit), PurgesSeen: q.PurgesSeen,
				}
			},
			func(m *wirepb.FollowRequest) shard.FollowRequest {
				return shard.FollowRequest{
					Copy: name(m.Copy), Edits: decodeList(m.Edits, decodeEdit), RevsLimit: int(m.RevsLimit), PurgesSeen: m.PurgesSeen,
				}
			},
		},
		codec[[]error, *wirepb.FollowResults]{
			func(a *[]error) *wirepb.FollowResults {
				return &wirepb.FollowResults{Results: encodeList(*a, func(err *error, m *wirepb.FollowResult) { m.Fault = wire.EncodeFault(*err) })}
			},
			func(m *wirepb.FollowResults) []error {
				return decodeList(m.Results, func(m *wirepb.FollowResult) error { return wire.DecodeFault(m.Fault) })
			},
		},
	).each(func(q shard.FollowRequest, a []error) (int, int) { return len(q.Edits), len(a) }),
})
