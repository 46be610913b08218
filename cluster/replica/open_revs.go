package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// OpenRevs reads several revisions of a document.
var OpenRevs = declare(Operation[shard.OpenRevsRequest, []shard.RevResult]{
	Copy:    func(q shard.OpenRevsRequest) string { return q.Copy },
	Counted: true,
	Run:     shards((*shard.Local).OpenRevs),
	Over: unary(wirepb.Op_OPEN_REVS, wire.ClassRead,
		codec[shard.OpenRevsRequest, *wirepb.OpenRevsRequest]{
			func(q *shard.OpenRevsRequest) *wirepb.OpenRevsRequest {
				m := &wirepb.OpenRevsRequest{Copy: q.Copy}
				encodeOpenRevs(q, m)
				return m
			},
			decodeOpenRevs,
		},
		codec[[]shard.RevResult, *wirepb.RevResults]{
			func(a *[]shard.RevResult) *wirepb.RevResults {
				return &wirepb.RevResults{Results: encodeList(*a, encodeRevResult)}
			},
			func(m *wirepb.RevResults) []shard.RevResult { return decodeList(m.Results, decodeRevResult) },
		}),
})

// OpenRevsManyRequest is OpenRevs for several documents of one copy.
type OpenRevsManyRequest struct {
	Copy string
	Docs []shard.OpenRevsRequest // of which Copy is not looked at
	// MaxBytes bounds the documents of the answer; see shard.Local.OpenRevsMany.
	MaxBytes int
}

// OpenRevsMany reads revisions of several documents, each with its own error, in
// the order of the request.
var OpenRevsMany = declare(Operation[OpenRevsManyRequest, []shard.RevsAnswer]{
	Copy:    func(q OpenRevsManyRequest) string { return q.Copy },
	Counted: true,
	Run: func(h Admitted, ctx context.Context, q OpenRevsManyRequest) ([]shard.RevsAnswer, error) {
		return h.Shards.OpenRevsMany(ctx, q.Copy, q.Docs, q.MaxBytes)
	},
	Over: unary(wirepb.Op_OPEN_REVS_MANY, wire.ClassRead,
		codec[OpenRevsManyRequest, *wirepb.OpenRevsList]{
			func(q *OpenRevsManyRequest) *wirepb.OpenRevsList {
				return &wirepb.OpenRevsList{Copy: q.Copy, MaxBytes: int64(q.MaxBytes), Requests: encodeList(q.Docs, encodeOpenRevs)}
			},
			func(m *wirepb.OpenRevsList) OpenRevsManyRequest {
				return OpenRevsManyRequest{name(m.Copy), decodeList(m.Requests, decodeOpenRevs), int(m.MaxBytes)}
			},
		},
		codec[[]shard.RevsAnswer, *wirepb.RevResultsList]{
			func(a *[]shard.RevsAnswer) *wirepb.RevResultsList {
				return &wirepb.RevResultsList{Answers: encodeList(*a, encodeRevsAnswer)}
			},
			func(m *wirepb.RevResultsList) []shard.RevsAnswer { return decodeList(m.Answers, decodeRevsAnswer) },
		},
	).each(func(q OpenRevsManyRequest, a []shard.RevsAnswer) (int, int) { return len(q.Docs), len(a) }),
})

func encodeRevsAnswer(a *shard.RevsAnswer, m *wirepb.RevResults) {
	m.Results, m.Fault = encodeList(a.Results, encodeRevResult), wire.EncodeFault(a.Err)
}

func decodeRevsAnswer(m *wirepb.RevResults) shard.RevsAnswer {
	return shard.RevsAnswer{Results: decodeList(m.Results, decodeRevResult), Err: wire.DecodeFault(m.Fault)}
}

// encodeOpenRevs leaves out the copy, which stands before a list of requests.
func encodeOpenRevs(q *shard.OpenRevsRequest, m *wirepb.OpenRevsRequest) {
	m.Id, m.Revs, m.All, m.Latest = q.ID, encodeRevs(q.Revs, nil), q.All, q.Latest
	m.WithPath, m.HeadOnly, m.RevOnly = q.WithPath, q.HeadOnly, q.RevOnly
	m.RevsLimit, m.MaxBytes = int64(q.RevsLimit), int64(q.MaxBytes)
}

func decodeOpenRevs(m *wirepb.OpenRevsRequest) shard.OpenRevsRequest {
	return shard.OpenRevsRequest{
		Copy: name(m.Copy), ID: name(m.Id), Revs: decodeRevs(m.Revs), All: m.All, Latest: m.Latest,
		WithPath: m.WithPath, HeadOnly: m.HeadOnly, RevOnly: m.RevOnly, RevsLimit: int(m.RevsLimit), MaxBytes: int(m.MaxBytes),
	}
}

func encodeRevResult(r *shard.RevResult, m *wirepb.RevResult) {
	m.Rev, m.Doc = encodeRev(r.Rev), encodeDoc(r.Doc, nil)
}

func decodeRevResult(m *wirepb.RevResult) shard.RevResult {
	return shard.RevResult{Rev: decodeRev(m.Rev), Doc: decodeDoc(m.Doc)}
}
