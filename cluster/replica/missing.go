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
	Run: func(h Admitted, ctx context.Context, q MissingRequest) ([]shard.IDMissing, error) {
		return h.Shards.Missing(ctx, q.Copy, q.IDs)
	},
	Over: unary(wirepb.Op_MISSING, wire.ClassRead,
		codec[MissingRequest, *wirepb.MissingRequest]{
			func(q *MissingRequest) *wirepb.MissingRequest {
				return &wirepb.MissingRequest{Copy: q.Copy, Ids: encodeList(q.IDs, encodeIDRevs)}
			},
			func(m *wirepb.MissingRequest) MissingRequest {
				return MissingRequest{name(m.Copy), decodeList(m.Ids, decodeIDRevs)}
			},
		},
		codec[[]shard.IDMissing, *wirepb.Missings]{
			func(a *[]shard.IDMissing) *wirepb.Missings {
				return &wirepb.Missings{Answers: encodeList(*a, encodeMissing)}
			},
			func(m *wirepb.Missings) []shard.IDMissing { return decodeList(m.Answers, decodeMissing) },
		},
	).each(func(q MissingRequest, a []shard.IDMissing) (int, int) { return len(q.IDs), len(a) }),
})

func encodeIDRevs(i *shard.IDRevs, m *wirepb.IDRevs) { m.Id, m.Revs = i.ID, encodeRevs(i.Revs, nil) }

func decodeIDRevs(m *wirepb.IDRevs) shard.IDRevs {
	return shard.IDRevs{ID: name(m.Id), Revs: decodeRevs(m.Revs)}
}

func encodeMissing(i *shard.IDMissing, m *wirepb.IDMissing) {
	m.Id, m.Missing, m.PossibleAncestors = i.ID, encodeRevs(i.Missing, nil), encodeRevs(i.PossibleAncestors, nil)
}

func decodeMissing(m *wirepb.IDMissing) shard.IDMissing {
	return shard.IDMissing{ID: m.Id, Missing: decodeRevs(m.Missing), PossibleAncestors: decodeRevs(m.PossibleAncestors)}
}
