package replica

import (
	"context"

	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/storage/doc"
)

// DocsHead is the metadata that a copy sends before the rows of a listing.
type DocsHead struct {
	Total, Before uint64 // live documents in the copy; those before the range in its direction
	Seq           uint64 // the moment
	UUID          [16]byte
}

// Docs is a listing of documents.
type Docs = Listing[DocsHead, shard.RowBatch]

// AllDocs lists live documents by id.
var AllDocs = declare(Operation[shard.DocsRequest, Docs]{
	Copy: func(q shard.DocsRequest) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q shard.DocsRequest) (Docs, error) {
		s, err := h.Shards.AllDocs(ctx, q)
		if err != nil {
			return Docs{}, err
		}
		return Docs{DocsHead{s.Total, s.Before, s.Seq, s.UUID}, s}, nil
	},
	Over: listing(wirepb.Op_ALL_DOCS,
		codec[shard.DocsRequest, *wirepb.DocsRequest]{encodeDocsRequest, decodeDocsRequest},
		codec[DocsHead, *wirepb.DocsHead]{
			func(h *DocsHead) *wirepb.DocsHead {
				return &wirepb.DocsHead{Total: h.Total, Before: h.Before, Seq: h.Seq, Uuid: h.UUID[:]}
			},
			func(m *wirepb.DocsHead) DocsHead { return DocsHead{m.Total, m.Before, m.Seq, decode16(m.Uuid)} },
		},
		batchCodec[shard.RowBatch, *wirepb.Rows]{
			encode: func(b *shard.RowBatch, m *wirepb.Rows) { m.Rows = refill(m.Rows, b.Rows, encodeRow) },
			decode: func(m *wirepb.Rows, b *shard.RowBatch) { b.Rows = decodeRows(b.Rows, m.Rows) },
			clear:  func(b *shard.RowBatch) { b.Rows = b.Rows[:0] },
			count:  func(b *shard.RowBatch) int { return len(b.Rows) },
		},
		func(q shard.DocsRequest) int { return q.Limit }),
})

// decodeRows appends rows and documents of a message to dst.
func decodeRows(dst []shard.Row, rows []*wirepb.Row) []shard.Row {
	docs := spaceFor(rows)
	return appendList(dst, rows, func(m *wirepb.Row) shard.Row {
		return shard.Row{
			ID: m.Id, Rev: doc.Rev{Pos: m.RevPos, ID: text(m.RevId)},
			Deleted: m.Deleted, Missing: m.Missing, Doc: docs.decode(m.Doc),
		}
	})
}

func encodeDocsRequest(req *shard.DocsRequest) *wirepb.DocsRequest {
	return &wirepb.DocsRequest{
		Copy: req.Copy, Lo: req.Lo, LoExclusive: req.LoExclusive, Hi: req.Hi, HasHi: req.HasHi,
		HiExclusive: req.HiExclusive, Desc: req.Desc, IncludeDocs: req.IncludeDocs, Conflicts: req.Conflicts,
		Limit: int64(req.Limit),
	}
}

func decodeDocsRequest(m *wirepb.DocsRequest) shard.DocsRequest {
	return shard.DocsRequest{
		Copy: name(m.Copy), Lo: m.Lo, LoExclusive: m.LoExclusive, Hi: m.Hi, HasHi: m.HasHi,
		HiExclusive: m.HiExclusive, Desc: m.Desc, IncludeDocs: m.IncludeDocs, Conflicts: m.Conflicts,
		Limit: int(m.Limit),
	}
}

func encodeRow(r *shard.Row, m *wirepb.Row) {
	m.Id, m.RevPos, m.RevId = r.ID, r.Rev.Pos, raw(r.Rev.ID)
	m.Deleted, m.Missing, m.Doc = r.Deleted, r.Missing, encodeDoc(r.Doc, m.Doc)
}
