package replica

import (
	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// Update decides edits, or merges what was decided elsewhere. Only the latter may
// be asked of an incomplete copy.
var Update = declare(Operation[shard.UpdateRequest, []shard.EditResult]{
	Copy: func(q shard.UpdateRequest) string { return q.Copy },
	NeedsOf: func(q shard.UpdateRequest) State {
		if q.NewEdits || !q.Trusted {
			return Complete
		}
		return Present
	},
	Counted: true, Writes: true,
	Run: shards((*shard.Local).Update),
	Over: unary(wirepb.Op_UPDATE, wire.ClassWrite,
		codec[shard.UpdateRequest, *wirepb.UpdateRequest]{encodeUpdate, decodeUpdate},
		codec[[]shard.EditResult, *wirepb.EditResults]{
			func(a *[]shard.EditResult) *wirepb.EditResults {
				return &wirepb.EditResults{Results: encodeList(*a, encodeResult)}
			},
			func(m *wirepb.EditResults) []shard.EditResult { return decodeList(m.Results, decodeResult) },
		},
	).each(func(q shard.UpdateRequest, a []shard.EditResult) (int, int) { return len(q.Edits), len(a) }),
})

func encodeUpdate(req *shard.UpdateRequest) *wirepb.UpdateRequest {
	m := &wirepb.UpdateRequest{
		Copy: req.Copy, NewEdits: req.NewEdits, Limits: encodeLimits(req.Limits), Db: req.DB, Security: req.Security,
		Delayed: req.Delayed, Trusted: req.Trusted, NoPath: req.NoPath, PurgesSeen: req.PurgesSeen, Insist: req.Insist,
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

func decodeUpdate(m *wirepb.UpdateRequest) shard.UpdateRequest {
	req := shard.UpdateRequest{
		Copy: name(m.Copy), NewEdits: m.NewEdits, Limits: decodeLimits(m.Limits), DB: name(m.Db), Security: filled(m.Security),
		Delayed: m.Delayed, Trusted: m.Trusted, NoPath: m.NoPath, PurgesSeen: m.PurgesSeen, Insist: m.Insist,
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
