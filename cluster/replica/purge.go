package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// PurgeRequest asks for the removal of leaves for good.
type PurgeRequest struct {
	Copy  string
	Items []shard.PurgeItem
}

// Purge removes leaves for good. There is nothing to decide, so that an incomplete
// copy does it too.
var Purge = declare(Operation[PurgeRequest, []shard.PurgeResult]{
	Copy:  func(q PurgeRequest) string { return q.Copy },
	Needs: Present, Counted: true, Writes: true,
	Run: func(h Admitted, ctx context.Context, q PurgeRequest) ([]shard.PurgeResult, error) {
		return h.Shards.Purge(ctx, q.Copy, q.Items)
	},
	Over: unary(wirepb.Op_PURGE, wire.ClassWrite,
		codec[PurgeRequest, *wirepb.PurgeRequest]{
			func(q *PurgeRequest) *wirepb.PurgeRequest {
				return &wirepb.PurgeRequest{Copy: q.Copy, Items: encodeList(q.Items, encodePurgeItem)}
			},
			func(m *wirepb.PurgeRequest) PurgeRequest {
				return PurgeRequest{name(m.Copy), decodeList(m.Items, decodePurgeItem)}
			},
		},
		codec[[]shard.PurgeResult, *wirepb.PurgeResults]{
			func(a *[]shard.PurgeResult) *wirepb.PurgeResults {
				return &wirepb.PurgeResults{Results: encodeList(*a, encodePurgeResult)}
			},
			func(m *wirepb.PurgeResults) []shard.PurgeResult { return decodeList(m.Results, decodePurgeResult) },
		},
	).each(func(q PurgeRequest, a []shard.PurgeResult) (int, int) { return len(q.Items), len(a) }),
})

func encodePurgeItem(i *shard.PurgeItem, m *wirepb.PurgeItem) {
	m.Uuid, m.Id, m.Revs, m.Paths = encode16(&i.UUID), i.ID, encodeRevs(i.Revs, nil), encodeList(i.Paths, fillPath)
}

func decodePurgeItem(m *wirepb.PurgeItem) shard.PurgeItem {
	return shard.PurgeItem{UUID: decode16(m.Uuid), ID: name(m.Id), Revs: decodeRevs(m.Revs), Paths: decodeList(m.Paths, decodePath)}
}

func encodePurgeResult(r *shard.PurgeResult, m *wirepb.PurgeResult) {
	m.Id, m.Purged = r.ID, encodeRevs(r.Purged, nil)
}

func decodePurgeResult(m *wirepb.PurgeResult) shard.PurgeResult {
	return shard.PurgeResult{ID: m.Id, Purged: decodeRevs(m.Purged)}
}
