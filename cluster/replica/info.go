package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// Info describes a copy.
var Info = declare(Operation[string, shard.Info]{
	Copy: copyName,
	Run:  shards((*shard.Local).Info),
	Over: unary(wirepb.Op_INFO, wire.ClassRead, copyCodec(), codec[shard.Info, *wirepb.Info]{encodeInfo, decodeInfo}),
})

// PartitionRequest asks about a partition.
type PartitionRequest struct{ Copy, Partition string }

// Partition describes one partition of a copy.
var Partition = declare(Operation[PartitionRequest, shard.PartitionInfo]{
	Copy: func(q PartitionRequest) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q PartitionRequest) (shard.PartitionInfo, error) {
		return h.Shards.Partition(ctx, q.Copy, q.Partition)
	},
	Over: unary(wirepb.Op_PARTITION, wire.ClassRead,
		codec[PartitionRequest, *wirepb.CopyID]{
			func(q *PartitionRequest) *wirepb.CopyID { return &wirepb.CopyID{Copy: q.Copy, Id: q.Partition} },
			func(m *wirepb.CopyID) PartitionRequest { return PartitionRequest{name(m.Copy), name(m.Id)} },
		},
		codec[shard.PartitionInfo, *wirepb.PartitionInfo]{
			func(i *shard.PartitionInfo) *wirepb.PartitionInfo {
				return &wirepb.PartitionInfo{Live: i.Live, Deleted: i.Deleted, External: i.External, Active: i.Active}
			},
			func(m *wirepb.PartitionInfo) shard.PartitionInfo {
				return shard.PartitionInfo{Live: m.Live, Deleted: m.Deleted, External: m.External, Active: m.Active}
			},
		}),
})

// At says which copy one is and how far it has come.
type At struct {
	UUID [16]byte
	Seq  uint64 // durable
}

// Position returns which copy it is and its durable sequence.
var Position = declare(Operation[string, At]{
	Copy: copyName,
	Run: func(h Admitted, ctx context.Context, copyName string) (at At, err error) {
		at.UUID, at.Seq, err = h.Shards.Position(ctx, copyName)
		return at, err
	},
	Over: unary(wirepb.Op_POSITION, wire.ClassRead, copyCodec(), codec[At, *wirepb.Position]{
		func(at *At) *wirepb.Position { return &wirepb.Position{Uuid: at.UUID[:], Seq: at.Seq} },
		func(m *wirepb.Position) At { return At{decode16(m.Uuid), m.Seq} },
	}),
})

func encodeInfo(i *shard.Info) *wirepb.Info {
	return &wirepb.Info{
		Uuid: encode16(&i.UUID), Live: i.Live, Deleted: i.Deleted, Seq: i.Seq, PurgeSeq: i.PurgeSeq, External: i.External,
		Active: i.Active, File: i.File, Compacting: i.Compacting, PurgeOldest: i.PurgeOldest,
	}
}

func decodeInfo(m *wirepb.Info) shard.Info {
	return shard.Info{
		UUID: decode16(m.Uuid), Live: m.Live, Deleted: m.Deleted, Seq: m.Seq, PurgeSeq: m.PurgeSeq, External: m.External,
		Active: m.Active, File: m.File, Compacting: m.Compacting, PurgeOldest: m.PurgeOldest,
	}
}
