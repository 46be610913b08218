package replica

import (
	"context"

	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/shard/view"
)

// ViewRows is an answer of a view.
type ViewRows = Listing[view.Head, view.Batch]

// ViewQuery lists rows of a view, or groups of them reduced.
var ViewQuery = declare(Operation[view.Request, ViewRows]{
	Copy: func(q view.Request) string { return q.Copy },
	Run: func(h *Held, ctx context.Context, q view.Request) (ViewRows, error) {
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
			encode: encodeViewRows,
			decode: func(m *wirepb.ViewRows, b *view.Batch) { b.Rows = appendViewRows(b.Rows, m.Rows) },
			clear:  func(b *view.Batch) { b.Rows = b.Rows[:0] },
			count:  func(b *view.Batch) int { return len(b.Rows) },
		},
		func(q view.Request) int { return q.Limit }),
})

func encodeViewRequest(q *view.Request) *wirepb.ViewRequest {
	m := &wirepb.ViewRequest{
		Copy: q.Copy, Signature: q.Signature, Definition: q.Definition, View: q.View, Design: q.Design,
		Update: uint32(q.Update), Desc: q.Desc, Limit: int64(q.Limit), Partition: q.Partition,
		Reduce: q.Reduce, GroupLevel: int64(q.GroupLevel), IncludeDocs: q.IncludeDocs, Conflicts: q.Conflicts,
	}
	for i := range q.Ranges {
		r := &q.Ranges[i]
		m.Ranges = append(m.Ranges, &wirepb.ViewRange{Lo: encodeBound(&r.Lo), Hi: encodeBound(&r.Hi)})
	}
	return m
}

func decodeViewRequest(m *wirepb.ViewRequest) view.Request {
	q := view.Request{
		Copy: name(m.Copy), Signature: name(m.Signature), Definition: m.Definition, View: name(m.View), Design: name(m.Design),
		Update: view.Update(m.Update), Desc: m.Desc, Limit: int(m.Limit), Partition: m.Partition,
		Reduce: m.Reduce, GroupLevel: int(m.GroupLevel), IncludeDocs: m.IncludeDocs, Conflicts: m.Conflicts,
	}
	if len(m.Ranges) > 0 {
		q.Ranges = make([]view.KeyRange, len(m.Ranges))
	}
	for i, r := range m.Ranges {
		q.Ranges[i] = view.KeyRange{Lo: decodeBound(r.Lo), Hi: decodeBound(r.Hi)}
	}
	return q
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

// encodeViewRows fills m, whose memory is used again.
func encodeViewRows(b *view.Batch, m *wirepb.ViewRows) {
	m.Rows = grow(m.Rows, len(b.Rows))
	for i := range b.Rows {
		from, to := &b.Rows[i], m.Rows[i]
		to.Range, to.Sort, to.Key, to.Value, to.Id = uint64(from.Range), from.Sort, from.Key, from.Value, from.ID
		to.Doc = encodeDoc(from.Doc, to.Doc)
	}
}

// appendViewRows appends rows and documents of a message to dst.
func appendViewRows(dst []view.Row, rows []*wirepb.ViewRow) []view.Row {
	for _, r := range rows {
		row := view.Row{Range: int(r.Range), Sort: r.Sort, Key: r.Key, Value: r.Value, ID: r.Id}
		if r.Doc != nil {
			row.Doc = decodeDoc(r.Doc, &shard.Doc{})
		}
		dst = append(dst, row)
	}
	return dst
}
