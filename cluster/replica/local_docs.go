package replica

import (
	"context"

	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// Locals is a listing of local documents.
type Locals = Listing[Done, shard.LocalBatch]

// LocalDocs lists local documents by id.
var LocalDocs = declare(Operation[shard.LocalDocsRequest, Locals]{
	Copy: func(q shard.LocalDocsRequest) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q shard.LocalDocsRequest) (Locals, error) {
		s, err := h.Shards.LocalDocs.List(ctx, q)
		if err != nil {
			return Locals{}, err
		}
		return Locals{Done{}, s}, nil
	},
	Over: listing(wirepb.Op_LOCAL_DOCS,
		codec[shard.LocalDocsRequest, *wirepb.DocsRequest]{encodeLocalDocsRequest, decodeLocalDocsRequest},
		doneCodec(),
		batchCodec[shard.LocalBatch, *wirepb.LocalDocs]{
			encode: func(b *shard.LocalBatch, m *wirepb.LocalDocs) { m.Rows = refill(m.Rows, b.Rows, encodeLocalDoc) },
			decode: func(m *wirepb.LocalDocs, b *shard.LocalBatch) { b.Rows = appendList(b.Rows, m.Rows, decodeLocalDoc) },
			clear:  func(b *shard.LocalBatch) { b.Rows = b.Rows[:0] },
			count:  func(b *shard.LocalBatch) int { return len(b.Rows) },
		},
		func(shard.LocalDocsRequest) int { return 0 }),
})

func encodeLocalDocsRequest(req *shard.LocalDocsRequest) *wirepb.DocsRequest {
	return &wirepb.DocsRequest{
		Copy: req.Copy, Lo: req.Lo, LoExclusive: req.LoExclusive, Hi: req.Hi, HasHi: req.HasHi,
		HiExclusive: req.HiExclusive, Desc: req.Desc, System: req.System,
	}
}

func decodeLocalDocsRequest(m *wirepb.DocsRequest) shard.LocalDocsRequest {
	return shard.LocalDocsRequest{
		Copy: name(m.Copy), Lo: m.Lo, LoExclusive: m.LoExclusive, Hi: m.Hi, HasHi: m.HasHi,
		HiExclusive: m.HiExclusive, Desc: m.Desc, System: m.System,
	}
}
