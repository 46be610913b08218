package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// PurgesRequest asks for the log of purges.
type PurgesRequest struct {
	Copy  string
	Since uint64 // purge sequence, exclusive
}

// Purges reads the log of purges of a copy.
var Purges = declare(Operation[PurgesRequest, []shard.PurgeInfo]{
	Copy: func(q PurgesRequest) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q PurgesRequest) ([]shard.PurgeInfo, error) {
		return h.Shards.Purges(ctx, q.Copy, q.Since)
	},
	Over: unary(wirepb.Op_PURGES, wire.ClassRead,
		codec[PurgesRequest, *wirepb.CopySince]{
			func(q *PurgesRequest) *wirepb.CopySince { return &wirepb.CopySince{Copy: q.Copy, Since: q.Since} },
			func(m *wirepb.CopySince) PurgesRequest { return PurgesRequest{name(m.Copy), m.Since} },
		},
		codec[[]shard.PurgeInfo, *wirepb.PurgeInfos]{
			func(a *[]shard.PurgeInfo) *wirepb.PurgeInfos {
				return &wirepb.PurgeInfos{Infos: encodeList(*a, encodePurgeInfo)}
			},
			func(m *wirepb.PurgeInfos) []shard.PurgeInfo { return decodeList(m.Infos, decodePurgeInfo) },
		}),
})

func encodePurgeInfo(i *shard.PurgeInfo, m *wirepb.PurgeInfo) {
	m.Seq, m.Uuid, m.Id = i.Seq, encode16(&i.UUID), i.ID
	m.Revs, m.Paths = encodeRevs(i.Revs, nil), encodeList(i.Paths, fillPath)
}

func decodePurgeInfo(m *wirepb.PurgeInfo) shard.PurgeInfo {
	return shard.PurgeInfo{
		Seq: m.Seq, UUID: decode16(m.Uuid), ID: m.Id, Revs: decodeRevs(m.Revs), Paths: decodeList(m.Paths, decodePath),
	}
}
