package replica

import (
	"context"
	"math"

	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/shard/view"
)

// ViewRows is an answer of a view.
type ViewRows = Listing[view.Head, view.Batch]

// ViewQuery lists rows of a view, or groups of them reduced.
var ViewQuery = declare(Operation[view.Request, ViewRows]{
	Copy: func(q view.Request) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q view.Request) (ViewRows, error) {
		s, err := h.Views.Query(ctx, q)
		if err != nil {
			return ViewRows{}, err
		}
		return ViewRows{s.Head, s}, nil
	},
	Over: listing(wirepb.Op_VIEW_QUERY,
		codec[view.Request, *wirepb.ViewRequest]{encodeViewRequest, decodeViewRequest},
		codec[view.Head, *wirepb.ViewHead]{
			func(h *view.Head) *wirepb.ViewHead {
				return &wirepb.ViewHead{Total: h.Total, Offset: h.Offset, Seq: h.Seq, Uuid: h.UUID[:]}
			},
			func(m *wirepb.ViewHead) view.Head {
				return view.Head{Total: m.Total, Offset: m.Offset, Seq: m.Seq, UUID: decode16(m.Uuid)}
			},
		},
		batchCodec[view.Batch, *wirepb.ViewRows]{
			encode: func(b *view.Batch, m *wirepb.ViewRows) { m.Rows = refill(m.Rows, b.Rows, encodeViewRow) },
			decode: decodeViewRows,
			clear:  func(b *view.Batch) { b.Rows = b.Rows[:0] },
			count:  func(b *view.Batch) int { return len(b.Rows) },
		},
		func(q view.Request) int { return q.Limit }),
})

func encodeViewRequest(q *view.Request) *wirepb.ViewRequest {
	return &wirepb.ViewRequest{
		Copy: q.Copy, Signature: q.Signature, Definition: q.Definition, View: q.View, Design: q.Design,
		Update: uint32(q.Update), Desc: q.Desc, Limit: int64(q.Limit), Partition: q.Partition,
		Reduce: q.Reduce, GroupLevel: int64(q.GroupLevel), IncludeDocs: q.IncludeDocs, Conflicts: q.Conflicts,
		Ranges: encodeList(q.Ranges, func(r *view.KeyRange, m *wirepb.ViewRange) { m.Lo, m.Hi = encodeBound(&r.Lo), encodeBound(&r.Hi) }),
	}
}

func decodeViewRequest(m *wirepb.ViewRequest) view.Request {
	return view.Request{
		Copy: name(m.Copy), Signature: name(m.Signature), Definition: m.Definition, View: name(m.View), Design: name(m.Design),
		Update: view.Update(m.Update), Desc: m.Desc, Limit: int(m.Limit), Partition: m.Partition,
		Reduce: m.Reduce, GroupLevel: int(m.GroupLevel), IncludeDocs: m.IncludeDocs, Conflicts: m.Conflicts,
		Ranges: decodeList(m.Ranges, func(m *wirepb.ViewRange) view.KeyRange {
			return view.KeyRange{Lo: decodeBound(m.Lo), Hi: decodeBound(m.Hi)}
		}),
	}
}

// encodeBound leaves a bound that is none out.
func encodeBound(b *view.Bound) *wirepb.ViewBound {
	if b.Key == nil {
		return nil
	}
	return &wirepb.ViewBound{Key: b.Key, Id: b.ID, HasId: b.HasID, Exclusive: b.Exclusive}
}

func decodeBound(m *wirepb.ViewBound) view.Bound {
	if m == nil {
		return view.Bound{}
	}
	return view.Bound{Key: m.Key, ID: m.Id, HasID: m.HasId, Exclusive: m.Exclusive}
}

func encodeViewRow(r *view.Row, m *wirepb.ViewRow) {
	m.Range, m.Sort, m.Key, m.Value, m.Id = uint64(r.Range), r.Sort, r.Key, r.Value, r.ID
	if m.RepeatedDoc = r.Repeated; r.Repeated {
		m.Doc = nil
	} else {
		m.Doc = encodeDoc(r.Doc, m.Doc)
	}
}

// decodeViewRows appends rows and documents of a message to a batch.
func decodeViewRows(m *wirepb.ViewRows, b *view.Batch) {
	docs, first := spaceFor(m.Rows), len(b.Rows)
	b.Rows = appendList(b.Rows, m.Rows, func(m *wirepb.ViewRow) view.Row {
		return view.Row{
			Range: int32(min(m.Range, math.MaxInt32)), Sort: filled(m.Sort), Key: filled(m.Key), Value: filled(m.Value), ID: m.Id, Doc: docs.decode(m.Doc),
		}
	})
	var last *shard.Doc
	for i, row := range m.Rows {
		if to := &b.Rows[first+i]; row.RepeatedDoc && last != nil {
			to.RepeatDoc(last)
		} else if to.Doc != nil {
			last = to.Doc
		}
	}
}
