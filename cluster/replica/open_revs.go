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
		codec[shard.OpenRevsRequest, *wirepb.OpenRevsRequest]{encodeOpenRevs, decodeOpenRevs},
		codec[[]shard.RevResult, *wirepb.RevResults]{encodeRevResults, decodeRevResults}),
})

// OpenRevsManyRequest is OpenRevs for several documents of one copy.
type OpenRevsManyRequest struct {
	Copy string
	Docs []shard.OpenRevsRequest // of which Copy is not looked at
	// MaxBytes is how much of bodies is answered, about; what is beyond has
	// fault.RequestTooLarge. The first document is always answered. 0: no bound.
	MaxBytes int
}

// OpenRevsMany reads revisions of several documents, each with its own error, in
// the order of the request.
var OpenRevsMany = declare(Operation[OpenRevsManyRequest, []shard.RevsAnswer]{
	Copy:    func(q OpenRevsManyRequest) string { return q.Copy },
	Counted: true,
	Run: func(h *Held, ctx context.Context, q OpenRevsManyRequest) ([]shard.RevsAnswer, error) {
		return h.Shards.OpenRevsMany(ctx, q.Copy, q.Docs, q.MaxBytes)
	},
	Over: unary(wirepb.Op_OPEN_REVS_MANY, wire.ClassRead,
		codec[OpenRevsManyRequest, *wirepb.OpenRevsList]{encodeOpenRevsMany, decodeOpenRevsMany},
		codec[[]shard.RevsAnswer, *wirepb.RevResultsList]{encodeRevsAnswers, decodeRevsAnswers},
	).each(
		func(q OpenRevsManyRequest) int { return len(q.Docs) }, func(a []shard.RevsAnswer) int { return len(a) }),
})

func encodeOpenRevsMany(q *OpenRevsManyRequest) *wirepb.OpenRevsList {
	m := &wirepb.OpenRevsList{Copy: q.Copy, MaxBytes: int64(q.MaxBytes), Requests: make([]*wirepb.OpenRevsRequest, len(q.Docs))}
	for i := range q.Docs {
		m.Requests[i] = encodeOpenRevs(&q.Docs[i])
		m.Requests[i].Copy = ""
	}
	return m
}

func decodeOpenRevsMany(m *wirepb.OpenRevsList) OpenRevsManyRequest {
	q := OpenRevsManyRequest{
		Copy: name(m.Copy), Docs: make([]shard.OpenRevsRequest, len(m.Requests)), MaxBytes: int(m.MaxBytes),
	}
	for i, r := range m.Requests {
		q.Docs[i] = decodeOpenRevs(r)
	}
	return q
}

func encodeRevsAnswers(answers *[]shard.RevsAnswer) *wirepb.RevResultsList {
	m := &wirepb.RevResultsList{Answers: make([]*wirepb.RevResults, len(*answers))}
	for i := range *answers {
		m.Answers[i] = encodeRevResults(&(*answers)[i].Results)
		m.Answers[i].Fault = wire.EncodeFault((*answers)[i].Err)
	}
	return m
}

func decodeRevsAnswers(m *wirepb.RevResultsList) []shard.RevsAnswer {
	out := make([]shard.RevsAnswer, len(m.Answers))
	for i, a := range m.Answers {
		out[i] = shard.RevsAnswer{Results: decodeRevResults(a), Err: wire.DecodeFault(a.Fault)}
	}
	return out
}

func encodeOpenRevs(req *shard.OpenRevsRequest) *wirepb.OpenRevsRequest {
	return &wirepb.OpenRevsRequest{
		Copy: req.Copy, Id: req.ID, Revs: encodeRevs(req.Revs), All: req.All, Latest: req.Latest,
		WithPath: req.WithPath, HeadOnly: req.HeadOnly, RevsLimit: int64(req.RevsLimit),
	}
}

func decodeOpenRevs(m *wirepb.OpenRevsRequest) shard.OpenRevsRequest {
	return shard.OpenRevsRequest{
		Copy: name(m.Copy), ID: name(m.Id), Revs: decodeRevs(m.Revs), All: m.All, Latest: m.Latest,
		WithPath: m.WithPath, HeadOnly: m.HeadOnly, RevsLimit: int(m.RevsLimit),
	}
}

func encodeRevResults(of *[]shard.RevResult) *wirepb.RevResults {
	results := *of
	m := &wirepb.RevResults{Results: make([]*wirepb.RevResult, len(results))}
	for i := range results {
		m.Results[i] = &wirepb.RevResult{Rev: encodeRev(results[i].Rev), Doc: encodeDoc(results[i].Doc, nil)}
	}
	return m
}

func decodeRevResults(m *wirepb.RevResults) []shard.RevResult {
	if len(m.Results) == 0 {
		return nil
	}
	out := make([]shard.RevResult, len(m.Results))
	for i, r := range m.Results {
		out[i] = shard.RevResult{Rev: decodeRev(r.Rev), Doc: decodeNewDoc(r.Doc)}
	}
	return out
}
