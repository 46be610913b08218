package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// Decide decides the edits of clients.
var Decide = declare(Operation[shard.DecideRequest, []shard.EditResult]{
	Copy:    func(q shard.DecideRequest) string { return q.Copy },
	Counted: true, Writes: true,
	Run: func(h Admitted, ctx context.Context, q shard.DecideRequest) ([]shard.EditResult, error) {
		q.Open = h.Open
		return h.Shards.Decide(ctx, q)
	},
	Over: unary(wirepb.Op_DECIDE, wire.ClassWrite,
		codec[shard.DecideRequest, *wirepb.DecideRequest]{encodeDecide, decodeDecide},
		codec[[]shard.EditResult, *wirepb.EditResults]{
			func(a *[]shard.EditResult) *wirepb.EditResults {
				return &wirepb.EditResults{Results: encodeList(*a, encodeResult)}
			},
			func(m *wirepb.EditResults) []shard.EditResult { return decodeList(m.Results, decodeResult) },
		},
	).each(func(q shard.DecideRequest, a []shard.EditResult) (int, int) { return len(q.Edits), len(a) }),
})

func encodeDecide(req *shard.DecideRequest) *wirepb.DecideRequest {
	m := &wirepb.DecideRequest{
		Copy: req.Copy, NewEdits: req.NewEdits, Limits: encodeLimits(req.Limits), Db: req.DB, Security: req.Security,
		Delayed: req.Delayed, NoPath: req.NoPath, Insist: req.Insist,
		Edits: encodeList(req.Edits, encodeEdit),
	}
	if u := &req.User; u.Name != "" || u.Anonymous || len(u.Roles) > 0 {
		m.User = &wirepb.User{Name: u.Name, Anonymous: u.Anonymous, Roles: u.Roles}
	}
	return m
}

func encodeEdit(e *shard.Edit, m *wirepb.Edit) {
	m.Id, m.Parent, m.Path, m.Deleted, m.Body = e.ID, encodeRev(e.Parent), encodePath(e.Path), e.Deleted, e.Body
	m.Atts = encodeList(e.Atts, func(a *shard.EditAttachment, m *wirepb.EditAttachment) {
		m.Attachment, m.Stub, m.HasRevpos, m.Data = &wirepb.Attachment{}, a.Stub, a.HasRevPos, a.Data
		encodeAttachment(&a.Attachment, m.Attachment)
	})
}

func decodeDecide(m *wirepb.DecideRequest) shard.DecideRequest {
	req := shard.DecideRequest{
		Copy: name(m.Copy), NewEdits: m.NewEdits, Limits: decodeLimits(m.Limits), DB: name(m.Db), Security: filled(m.Security),
		Delayed: m.Delayed, NoPath: m.NoPath, Insist: m.Insist,
		Edits: decodeList(m.Edits, decodeEdit),
	}
	if u := m.User; u != nil {
		req.User = shard.User{Name: u.Name, Anonymous: u.Anonymous, Roles: u.Roles}
	}
	return req
}

func decodeEdit(m *wirepb.Edit) shard.Edit {
	return shard.Edit{
		ID: name(m.Id), Parent: decodeRev(m.Parent), Path: decodePath(m.Path), Deleted: m.Deleted, Body: filled(m.Body),
		Atts: decodeList(m.Atts, func(m *wirepb.EditAttachment) shard.EditAttachment {
			return shard.EditAttachment{Attachment: decodeAttachment(m.Attachment), Stub: m.Stub, HasRevPos: m.HasRevpos, Data: m.Data}
		}),
	}
}

func encodeResult(r *shard.EditResult, m *wirepb.EditResult) {
	m.Rev, m.Path, m.Fault = encodeRev(r.Rev), encodePath(r.Path), wire.EncodeFault(r.Err)
	m.Accepted, m.Kept = r.Accepted, encodeList(r.Kept, encodeAttachment)
}

func decodeResult(m *wirepb.EditResult) shard.EditResult {
	return shard.EditResult{
		Rev: decodeRev(m.Rev), Path: decodePath(m.Path), Err: wire.DecodeFault(m.Fault),
		Accepted: m.Accepted, Kept: decodeList(m.Kept, decodeAttachment),
	}
}
