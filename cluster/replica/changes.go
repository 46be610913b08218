package replica

import (
	"context"

	"divan/cluster/sequence"
	"divan/cluster/wire/wirepb"
	"divan/shard"
	"divan/storage/doc"
)

// Feed is a listing of changes. A batch may be empty although there is more.
type Feed = Listing[sequence.Head, shard.ChangeBatch]

// Changes lists changes in the order they happened.
var Changes = declare(Operation[shard.ChangesRequest, Feed]{
	Copy: func(q shard.ChangesRequest) string { return q.Copy },
	Run: func(h *Held, ctx context.Context, q shard.ChangesRequest) (Feed, error) {
		s, err := h.Shards.Changes(ctx, q)
		if err != nil {
			return Feed{}, err
		}
		return Feed{sequence.Head{Seq: s.Seq, UUID: s.UUID}, s}, nil
	},
	Over: listing(wirepb.Op_CHANGES,
		codec[shard.ChangesRequest, *wirepb.ChangesRequest]{encodeChangesRequest, decodeChangesRequest},
		codec[sequence.Head, *wirepb.ChangesHead]{
			func(h *sequence.Head) *wirepb.ChangesHead {
				m := &wirepb.ChangesHead{Seq: h.Seq, Uuid: h.UUID[:]}
				for i := range h.Origins {
					m.Origins = append(m.Origins, &wirepb.Origin{Uuid: h.Origins[i].UUID[:], Upto: h.Origins[i].Upto})
				}
				return m
			},
			func(m *wirepb.ChangesHead) sequence.Head {
				h := sequence.Head{Seq: m.Seq, UUID: decode16(m.Uuid)}
				for _, o := range m.Origins {
					h.Origins = append(h.Origins, sequence.Origin{UUID: decode16(o.Uuid), Upto: o.Upto})
				}
				return h
			},
		},
		batchCodec[shard.ChangeBatch, *wirepb.Changes]{
			encode: encodeChanges,
			decode: func(m *wirepb.Changes, b *shard.ChangeBatch) {
				b.Upto, b.Rows = m.Upto, appendChanges(b.Rows, m.Rows)
			},
			clear: func(b *shard.ChangeBatch) { b.Rows = b.Rows[:0] },
			count: func(b *shard.ChangeBatch) int { return len(b.Rows) },
		},
		func(q shard.ChangesRequest) int { return q.Limit }),
})

// encodeChanges fills a message, whose memory is used again.
func encodeChanges(b *shard.ChangeBatch, into *wirepb.Changes) {
	into.Upto, into.Rows = b.Upto, grow(into.Rows, len(b.Rows))
	for i, m := range into.Rows {
		c := &b.Rows[i]
		m.Seq, m.Id, m.Deleted, m.Doc = c.Seq, c.ID, c.Deleted, encodeDoc(c.Doc, m.Doc)
		if m.Leaves == nil {
			m.Leaves = &wirepb.Revs{}
		}
		m.Leaves.Pos, m.Leaves.Ids = m.Leaves.Pos[:0], m.Leaves.Ids[:0]
		for _, r := range c.Leaves {
			m.Leaves.Pos, m.Leaves.Ids = append(m.Leaves.Pos, r.Pos), append(m.Leaves.Ids, raw(r.ID))
		}
	}
}

// appendChanges appends rows of a message to dst.
func appendChanges(dst []shard.Change, rows []*wirepb.Change) []shard.Change {
	leaves, docs := 0, 0
	for _, r := range rows {
		if r.Leaves != nil {
			leaves += len(r.Leaves.Pos)
		}
		if r.Doc != nil {
			docs++
		}
	}
	revs, arena := make([]doc.Rev, 0, leaves), make([]shard.Doc, docs)
	for _, r := range rows {
		at := len(revs)
		revs = appendRevs(revs, r.Leaves)
		c := shard.Change{Seq: r.Seq, ID: r.Id, Leaves: revs[at:len(revs):len(revs)], Deleted: r.Deleted}
		if r.Doc != nil {
			c.Doc, arena = decodeDoc(r.Doc, &arena[0]), arena[1:]
		}
		dst = append(dst, c)
	}
	return dst
}

func encodeChangesRequest(req *shard.ChangesRequest) *wirepb.ChangesRequest {
	m := &wirepb.ChangesRequest{
		Copy: req.Copy, Since: req.Since, Desc: req.Desc, AllLeaves: req.AllLeaves,
		IncludeDocs: req.IncludeDocs, Conflicts: req.Conflicts, Limit: int64(req.Limit),
	}
	if f := &req.Filter; f.Kind != shard.FilterNone || len(f.IDs) > 0 || len(f.Selector) > 0 || f.Function.Name != "" {
		m.Filter = &wirepb.Filter{Kind: uint32(f.Kind), Ids: f.IDs, Selector: f.Selector}
		if fn := &f.Function; fn.Name != "" {
			m.Filter.Function = &wirepb.FilterFunc{
				Db: fn.DB, Design: fn.Design, Rev: encodeRev(fn.Rev), Name: fn.Name, Request: fn.Request,
			}
		}
	}
	return m
}

func decodeChangesRequest(m *wirepb.ChangesRequest) shard.ChangesRequest {
	req := shard.ChangesRequest{
		Copy: name(m.Copy), Since: m.Since, Desc: m.Desc, AllLeaves: m.AllLeaves,
		IncludeDocs: m.IncludeDocs, Conflicts: m.Conflicts, Limit: int(m.Limit),
	}
	if f := m.Filter; f != nil {
		req.Filter = shard.Filter{Kind: shard.FilterKind(f.Kind), IDs: f.Ids, Selector: filled(f.Selector)}
		if fn := f.Function; fn != nil {
			req.Filter.Function = shard.FilterFunc{
				DB: name(fn.Db), Design: name(fn.Design), Rev: decodeRev(fn.Rev), Name: fn.Name, Request: filled(fn.Request),
			}
		}
	}
	return req
}
