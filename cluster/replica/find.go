package replica

import (
	"context"

	"divan/cluster/wire/wirepb"
	"divan/shard/find"
	"divan/shard/view"
)

// FindHead is the metadata that a copy sends before the documents that match a selector.
type FindHead struct {
	Seq uint64 // of the copy, that the answer reflects
}

// Found is the documents of a copy that match a selector. A batch may be empty
// although there is more.
type Found = Listing[FindHead, find.Batch]

// Find lists documents that match a selector, by id or in the order of an index.
var Find = declare(Operation[find.Request, Found]{
	Copy: func(q find.Request) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q find.Request) (Found, error) {
		s, err := find.Open(ctx, h.Shards, h.Views, q)
		if err != nil {
			return Found{}, err
		}
		return Found{FindHead{s.Seq}, s}, nil
	},
	Over: listing(wirepb.Op_FIND,
		codec[find.Request, *wirepb.FindRequest]{encodeFindRequest, decodeFindRequest},
		codec[FindHead, *wirepb.FindHead]{
			func(h *FindHead) *wirepb.FindHead { return &wirepb.FindHead{Seq: h.Seq} },
			func(m *wirepb.FindHead) FindHead { return FindHead{m.Seq} },
		},
		batchCodec[find.Batch, *wirepb.FindRows]{
			encode: encodeFound,
			decode: decodeFound,
			clear:  func(b *find.Batch) { b.Rows, b.Figures, b.Moved = b.Rows[:0], find.Figures{}, false },
			count:  func(b *find.Batch) int { return len(b.Rows) },
		},
		func(q find.Request) int { return q.Hint }),
})

func encodeFindRequest(q *find.Request) *wirepb.FindRequest {
	m := &wirepb.FindRequest{
		Copy: q.Copy, Selector: q.Selector, Fields: q.Fields, Desc: q.Desc, Conflicts: q.Conflicts,
		Plain: q.Plain, Count: q.Count, Limit: int64(q.Limit), Hint: int64(q.Hint), After: encodePosition(q.After),
		Ranges: encodeList(q.Ranges, func(r *find.Range, m *wirepb.FindRange) { m.Lo, m.Hi, m.Bounded = r.Lo, r.Hi, r.Hi != nil }),
	}
	if x := q.Index; x != nil {
		m.Index = &wirepb.FindIndex{
			Signature: x.Signature, Definition: x.Definition, Design: x.Design, View: x.View,
			Update: uint32(x.Update), Partition: x.Partition, Covering: x.Covering,
		}
	}
	return m
}

func decodeFindRequest(m *wirepb.FindRequest) find.Request {
	q := find.Request{
		Copy: name(m.Copy), Selector: m.Selector, Fields: m.Fields, Desc: m.Desc, Conflicts: m.Conflicts,
		Plain: m.Plain, Count: m.Count, Limit: int(m.Limit), Hint: int(m.Hint),
		Ranges: decodeList(m.Ranges, func(m *wirepb.FindRange) find.Range {
			if !m.Bounded {
				return find.Range{Lo: m.Lo}
			}
			return find.Range{Lo: m.Lo, Hi: append([]byte{}, m.Hi...)}
		}),
	}
	if x := m.Index; x != nil {
		q.Index = &find.Index{
			Signature: name(x.Signature), Definition: x.Definition, Design: name(x.Design), View: name(x.View),
			Update: view.Update(x.Update), Partition: name(x.Partition), Covering: x.Covering,
		}
	}
	if m.After != nil {
		q.After = &find.Position{Sort: m.After.Sort, ID: string(m.After.Id)}
	}
	return q
}

// encodePosition encodes a position; nil is none.
func encodePosition(p *find.Position) *wirepb.FindPosition {
	if p == nil {
		return nil
	}
	return &wirepb.FindPosition{Sort: p.Sort, Id: raw(p.ID)}
}

// encodeFound fills m, whose memory is used again.
func encodeFound(b *find.Batch, m *wirepb.FindRows) {
	m.Rows = refill(m.Rows, b.Rows, func(r *find.Row, m *wirepb.FindRow) { m.Sort, m.Id, m.Doc = r.Sort, r.ID, r.Doc })
	m.Keys, m.Docs, m.Matches = b.Figures.Keys, b.Figures.Docs, b.Figures.Matches
	m.Last = nil
	if b.Moved {
		m.Last = encodePosition(&b.Last)
	}
}

// decodeFound appends the rows of a message to a batch.
func decodeFound(m *wirepb.FindRows, b *find.Batch) {
	b.Rows = appendList(b.Rows, m.Rows, func(m *wirepb.FindRow) find.Row { return find.Row{Sort: filled(m.Sort), ID: m.Id, Doc: filled(m.Doc)} })
	b.Figures.Add(find.Figures{Keys: m.Keys, Docs: m.Docs, Matches: m.Matches})
	if m.Last != nil {
		b.Last, b.Moved = find.Position{Sort: m.Last.Sort, ID: string(m.Last.Id)}, true
	}
}
