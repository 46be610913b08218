package wire

import (
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

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

func encodeChangesRequest(req *shard.ChangesRequest) *wirepb.ChangesRequest {
	m := &wirepb.ChangesRequest{
		Copy: req.Copy, Since: req.Since, Desc: req.Desc, AllLeaves: req.AllLeaves,
		IncludeDocs: req.IncludeDocs, Conflicts: req.Conflicts, Limit: int64(req.Limit),
	}
	if f := &req.Filter; f.Kind != shard.FilterNone || len(f.IDs) > 0 || len(f.Selector) > 0 {
		m.Filter = &wirepb.Filter{Kind: uint32(f.Kind), Ids: f.IDs, Selector: f.Selector}
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
	}
	return req
}

// rowEncoder makes messages of batches, with the same memory each time: what it
// returns has to be sent before it is used again.
type rowEncoder struct {
	rows  wirepb.Rows
	local wirepb.LocalDocs
	chang wirepb.Changes
}

// grow makes list n long, with what it held before.
func grow[M any](list []*M, n int) []*M {
	list = list[:min(n, cap(list))]
	for len(list) < n {
		list = append(list, nil)
	}
	for i := range list {
		if list[i] == nil {
			list[i] = new(M)
		}
	}
	return list
}

func (e *rowEncoder) docs(b *shard.RowBatch) *wirepb.Rows {
	e.rows.Rows = grow(e.rows.Rows, len(b.Rows))
	for i := range b.Rows {
		encodeRow(&b.Rows[i], e.rows.Rows[i])
	}
	return &e.rows
}

func (e *rowEncoder) locals(b *shard.LocalBatch) *wirepb.LocalDocs {
	e.local.Rows = grow(e.local.Rows, len(b.Rows))
	for i, m := range e.local.Rows {
		m.Id, m.Rev, m.Body = b.Rows[i].ID, b.Rows[i].Rev, b.Rows[i].Body
	}
	return &e.local
}

func (e *rowEncoder) changes(b *shard.ChangeBatch) *wirepb.Changes {
	e.chang.Upto = b.Upto
	e.chang.Rows = grow(e.chang.Rows, len(b.Rows))
	for i, m := range e.chang.Rows {
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
	return &e.chang
}
