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
	Run: func(h *Held, ctx context.Context, q PurgesRequest) ([]shard.PurgeInfo, error) {
		return h.Shards.Purges(ctx, q.Copy, q.Since)
	},
	Over: unary(wirepb.Op_PURGES, wire.ClassRead,
		codec[PurgesRequest, *wirepb.CopySince]{
			func(q *PurgesRequest) *wirepb.CopySince { return &wirepb.CopySince{Copy: q.Copy, Since: q.Since} },
			func(m *wirepb.CopySince) PurgesRequest { return PurgesRequest{name(m.Copy), m.Since} },
		},
		codec[[]shard.PurgeInfo, *wirepb.PurgeInfos]{encodePurgeInfos, decodePurgeInfos}),
})

func encodePurgeInfos(of *[]shard.PurgeInfo) *wirepb.PurgeInfos {
	infos := *of
	m := &wirepb.PurgeInfos{Infos: make([]*wirepb.PurgeInfo, len(infos))}
	for i := range infos {
		p := &infos[i]
		m.Infos[i] = &wirepb.PurgeInfo{Seq: p.Seq, Uuid: encode16(&p.UUID), Id: p.ID, Revs: encodeRevs(p.Revs), Paths: encodePaths(p.Paths)}
	}
	return m
}

func decodePurgeInfos(m *wirepb.PurgeInfos) []shard.PurgeInfo {
	if len(m.Infos) == 0 {
		return nil
	}
	out := make([]shard.PurgeInfo, len(m.Infos))
	for i, p := range m.Infos {
		out[i] = shard.PurgeInfo{Seq: p.Seq, UUID: decode16(p.Uuid), ID: p.Id, Revs: decodeRevs(p.Revs), Paths: decodePaths(p.Paths)}
	}
	return out
}
