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
	Run: func(h *Held, ctx context.Context, q PurgeRequest) ([]shard.PurgeResult, error) {
		return h.Shards.Purge(ctx, q.Copy, q.Items)
	},
	Over: unary(wirepb.Op_PURGE, wire.ClassWrite,
		codec[PurgeRequest, *wirepb.PurgeRequest]{
			func(q *PurgeRequest) *wirepb.PurgeRequest {
				return &wirepb.PurgeRequest{Copy: q.Copy, Items: encodePurgeItems(q.Items)}
			},
			func(m *wirepb.PurgeRequest) PurgeRequest {
				return PurgeRequest{name(m.Copy), decodePurgeItems(m.Items)}
			},
		},
		codec[[]shard.PurgeResult, *wirepb.PurgeResults]{encodePurgeResults, decodePurgeResults},
	).each(
		func(q PurgeRequest) int { return len(q.Items) }, func(a []shard.PurgeResult) int { return len(a) }),
})

func encodePurgeItems(items []shard.PurgeItem) []*wirepb.PurgeItem {
	out := make([]*wirepb.PurgeItem, len(items))
	for i := range items {
		out[i] = &wirepb.PurgeItem{Uuid: encode16(&items[i].UUID), Id: items[i].ID, Revs: encodeRevs(items[i].Revs), Paths: encodePaths(items[i].Paths)}
	}
	return out
}

func decodePurgeItems(ms []*wirepb.PurgeItem) []shard.PurgeItem {
	if len(ms) == 0 {
		return nil
	}
	out := make([]shard.PurgeItem, len(ms))
	for i, m := range ms {
		out[i] = shard.PurgeItem{UUID: decode16(m.Uuid), ID: name(m.Id), Revs: decodeRevs(m.Revs), Paths: decodePaths(m.Paths)}
	}
	return out
}

func encodePurgeResults(of *[]shard.PurgeResult) *wirepb.PurgeResults {
	results := *of
	m := &wirepb.PurgeResults{Results: make([]*wirepb.PurgeResult, len(results))}
	for i := range results {
		m.Results[i] = &wirepb.PurgeResult{Id: results[i].ID, Purged: encodeRevs(results[i].Purged)}
	}
	return m
}

func decodePurgeResults(m *wirepb.PurgeResults) []shard.PurgeResult {
	if len(m.Results) == 0 {
		return nil
	}
	out := make([]shard.PurgeResult, len(m.Results))
	for i, r := range m.Results {
		out[i] = shard.PurgeResult{ID: r.Id, Purged: decodeRevs(r.Purged)}
	}
	return out
}
