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
		codec[[]shard.EditResult, *wirepb.EditResults]{encodeResults, decodeResults},
	).each(
		func(q shard.UpdateRequest) int { return len(q.Edits) }, func(a []shard.EditResult) int { return len(a) }),
})

func encodeUpdate(req *shard.UpdateRequest) *wirepb.UpdateRequest {
	m := &wirepb.UpdateRequest{
		Copy: req.Copy, NewEdits: req.NewEdits, Limits: encodeLimits(req.Limits), Db: req.DB, Security: req.Security,
		Delayed: req.Delayed, Trusted: req.Trusted, NoPath: req.NoPath, PurgesSeen: req.PurgesSeen, Insist: req.Insist,
	}
	if u := &req.User; u.Name != "" || u.Anonymous || len(u.Roles) > 0 {
		m.User = &wirepb.User{Name: u.Name, Anonymous: u.Anonymous, Roles: u.Roles}
	}
	edits := make([]wirepb.Edit, len(req.Edits))
	m.Edits = make([]*wirepb.Edit, len(edits))
	for i := range req.Edits {
		m.Edits[i] = &edits[i]
		encodeEdit(&req.Edits[i], m.Edits[i])
	}
	return m
}

func encodeEdit(e *shard.Edit, m *wirepb.Edit) {
	m.Id, m.Parent, m.Path, m.Deleted, m.Body = e.ID, encodeRev(e.Parent), encodePath(e.Path), e.Deleted, e.Body
	for i := range e.Atts {
		a := &e.Atts[i]
		m.Atts = append(m.Atts, &wirepb.EditAttachment{
			Attachment: encodeAttachment(&a.Attachment), Stub: a.Stub, HasRevpos: a.HasRevPos, Data: a.Data,
		})
	}
}

func decodeUpdate(m *wirepb.UpdateRequest) shard.UpdateRequest {
	req := shard.UpdateRequest{
		Copy: name(m.Copy), NewEdits: m.NewEdits, Limits: decodeLimits(m.Limits), DB: name(m.Db), Security: filled(m.Security),
		Delayed: m.Delayed, Trusted: m.Trusted, NoPath: m.NoPath, PurgesSeen: m.PurgesSeen, Insist: m.Insist,
	}
	if u := m.User; u != nil {
		req.User = shard.User{Name: u.Name, Anonymous: u.Anonymous, Roles: u.Roles}
	}
	if len(m.Edits) > 0 {
		req.Edits = make([]shard.Edit, len(m.Edits))
	}
	for i, e := range m.Edits {
		req.Edits[i] = decodeEdit(e)
	}
	return req
}

func decodeEdit(m *wirepb.Edit) shard.Edit {
	e := shard.Edit{
		ID: name(m.Id), Parent: decodeRev(m.Parent), Path: decodePath(m.Path), Deleted: m.Deleted, Body: filled(m.Body),
	}
	if len(m.Atts) > 0 {
		e.Atts = make([]shard.EditAttachment, len(m.Atts))
	}
	for i, a := range m.Atts {
		e.Atts[i] = shard.EditAttachment{
			Attachment: decodeAttachment(a.Attachment), Stub: a.Stub, HasRevPos: a.HasRevpos, Data: a.Data,
		}
	}
	return e
}

func encodeResults(of *[]shard.EditResult) *wirepb.EditResults {
	results := *of
	all := make([]wirepb.EditResult, len(results))
	m := &wirepb.EditResults{Results: make([]*wirepb.EditResult, len(results))}
	for i := range results {
		r := &results[i]
		all[i].Rev, all[i].Path = encodeRev(r.Rev), encodePath(r.Path)
		all[i].Fault, all[i].Accepted = wire.EncodeFault(r.Err), r.Accepted
		for k := range r.Kept {
			all[i].Kept = append(all[i].Kept, encodeAttachment(&r.Kept[k]))
		}
		m.Results[i] = &all[i]
	}
	return m
}

func decodeResults(m *wirepb.EditResults) []shard.EditResult {
	if len(m.Results) == 0 {
		return nil
	}
	out := make([]shard.EditResult, len(m.Results))
	for i, r := range m.Results {
		out[i] = shard.EditResult{
			Rev: decodeRev(r.Rev), Path: decodePath(r.Path), Err: wire.DecodeFault(r.Fault), Accepted: r.Accepted,
		}
		for _, a := range r.Kept {
			out[i].Kept = append(out[i].Kept, decodeAttachment(a))
		}
	}
	return out
}
