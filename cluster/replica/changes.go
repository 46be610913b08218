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
	Run: func(h Admitted, ctx context.Context, q shard.ChangesRequest) (Feed, error) {
		s, err := h.Shards.Changes(ctx, q)
		if err != nil {
			return Feed{}, err
		}
		head := sequence.Head{Seq: s.Seq, UUID: s.UUID}
		for _, o := range s.Origins {
			head.Origins = append(head.Origins, sequence.Origin{UUID: o.UUID, Upto: o.Upto})
		}
		return Feed{head, s}, nil
	},
	Over: listing(wirepb.Op_CHANGES,
		codec[shard.ChangesRequest, *wirepb.ChangesRequest]{encodeChangesRequest, decodeChangesRequest},
		codec[sequence.Head, *wirepb.ChangesHead]{
			func(h *sequence.Head) *wirepb.ChangesHead {
				return &wirepb.ChangesHead{
					Seq: h.Seq, Uuid: h.UUID[:],
					Origins: encodeList(h.Origins, func(o *sequence.Origin, m *wirepb.Origin) { m.Uuid, m.Upto = o.UUID[:], o.Upto }),
				}
			},
			func(m *wirepb.ChangesHead) sequence.Head {
				return sequence.Head{
					Seq: m.Seq, UUID: decode16(m.Uuid),
					Origins: decodeList(m.Origins, func(m *wirepb.Origin) sequence.Origin {
						return sequence.Origin{UUID: decode16(m.Uuid), Upto: m.Upto}
					}),
				}
			},
		},
		batchCodec[shard.ChangeBatch, *wirepb.Changes]{
			encode: func(b *shard.ChangeBatch, m *wirepb.Changes) {
				m.Upto, m.Rows = b.Upto, refill(m.Rows, b.Rows, encodeChange)
			},
			decode: func(m *wirepb.Changes, b *shard.ChangeBatch) {
				b.Upto, b.Rows = m.Upto, decodeChanges(b.Rows, m.Rows)
			},
			clear: func(b *shard.ChangeBatch) { b.Rows = b.Rows[:0] },
			count: func(b *shard.ChangeBatch) int { return len(b.Rows) },
		},
		func(q shard.ChangesRequest) int { return q.Limit }),
})

func encodeChange(c *shard.Change, m *wirepb.Change) {
	m.Seq, m.Id, m.Leaves = c.Seq, c.ID, encodeRevs(c.Leaves, m.Leaves)
	m.Deleted, m.Doc = c.Deleted, encodeDoc(c.Doc, m.Doc)
}

// decodeChanges appends rows of a message to dst.
func decodeChanges(dst []shard.Change, rows []*wirepb.Change) []shard.Change {
	leaves, docs := 0, spaceFor(rows)
	for _, r := range rows {
		if r.Leaves != nil {
			leaves += len(r.Leaves.Pos)
		}
	}
	revs := make([]doc.Rev, 0, leaves)
	return appendList(dst, rows, func(m *wirepb.Change) shard.Change {
		at := len(revs)
		revs = appendRevs(revs, m.Leaves)
		return shard.Change{Seq: m.Seq, ID: m.Id, Leaves: revs[at:len(revs):len(revs)], Deleted: m.Deleted, Doc: docs.decode(m.Doc)}
	})
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
