package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// MissingRequest asks which revisions of documents a copy lacks.
type MissingRequest struct {
	Copy string
	IDs  []shard.IDRevs
}

// Missing tells which revisions a copy lacks, for each document of the request.
var Missing = declare(Operation[MissingRequest, []shard.IDMissing]{
	Copy: func(q MissingRequest) string { return q.Copy },
	Run: func(h *Held, ctx context.Context, q MissingRequest) ([]shard.IDMissing, error) {
		return h.Shards.Missing(ctx, q.Copy, q.IDs)
	},
	Over: unary(wirepb.Op_MISSING, wire.ClassRead,
		codec[MissingRequest, *wirepb.MissingRequest]{
			func(q *MissingRequest) *wirepb.MissingRequest {
				return &wirepb.MissingRequest{Copy: q.Copy, Ids: encodeIDRevs(q.IDs)}
			},
			func(m *wirepb.MissingRequest) MissingRequest {
				return MissingRequest{name(m.Copy), decodeIDRevs(m.Ids)}
			},
		},
		codec[[]shard.IDMissing, *wirepb.Missings]{encodeMissings, decodeMissings},
	).each(
		func(q MissingRequest) int { return len(q.IDs) }, func(a []shard.IDMissing) int { return len(a) }),
})

func encodeIDRevs(ids []shard.IDRevs) []*wirepb.IDRevs {
	out := make([]*wirepb.IDRevs, len(ids))
	for i := range ids {
		out[i] = &wirepb.IDRevs{Id: ids[i].ID, Revs: encodeRevs(ids[i].Revs)}
	}
	return out
}

func decodeIDRevs(ms []*wirepb.IDRevs) []shard.IDRevs {
	if len(ms) == 0 {
		return nil
	}
	out := make([]shard.IDRevs, len(ms))
	for i, m := range ms {
		out[i] = shard.IDRevs{ID: name(m.Id), Revs: decodeRevs(m.Revs)}
	}
	return out
}

func encodeMissings(of *[]shard.IDMissing) *wirepb.Missings {
	answers := *of
	m := &wirepb.Missings{Answers: make([]*wirepb.IDMissing, len(answers))}
	for i := range answers {
		m.Answers[i] = &wirepb.IDMissing{
			Id: answers[i].ID, Missing: encodeRevs(answers[i].Missing),
			PossibleAncestors: encodeRevs(answers[i].PossibleAncestors),
		}
	}
	return m
}

func decodeMissings(m *wirepb.Missings) []shard.IDMissing {
	if len(m.Answers) == 0 {
		return nil
	}
	out := make([]shard.IDMissing, len(m.Answers))
	for i, a := range m.Answers {
		out[i] = shard.IDMissing{
			ID: a.Id, Missing: decodeRevs(a.Missing), PossibleAncestors: decodeRevs(a.PossibleAncestors),
		}
	}
	return out
}
