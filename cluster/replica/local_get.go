package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// LocalGetRequest asks for a local document.
type LocalGetRequest struct{ Copy, ID string }

// LocalGet reads a local document.
var LocalGet = declare(Operation[LocalGetRequest, *shard.LocalDoc]{
	Copy:    func(q LocalGetRequest) string { return q.Copy },
	Counted: true,
	Run: func(h Admitted, ctx context.Context, q LocalGetRequest) (*shard.LocalDoc, error) {
		return h.Shards.LocalDocs.Get(ctx, q.Copy, q.ID)
	},
	Over: unary(wirepb.Op_LOCAL_GET, wire.ClassRead,
		codec[LocalGetRequest, *wirepb.CopyID]{
			func(q *LocalGetRequest) *wirepb.CopyID { return &wirepb.CopyID{Copy: q.Copy, Id: q.ID} },
			func(m *wirepb.CopyID) LocalGetRequest { return LocalGetRequest{name(m.Copy), name(m.Id)} },
		},
		codec[*shard.LocalDoc, *wirepb.LocalDoc]{
			func(d **shard.LocalDoc) *wirepb.LocalDoc {
				m := &wirepb.LocalDoc{}
				encodeLocalDoc(*d, m)
				return m
			},
			func(m *wirepb.LocalDoc) *shard.LocalDoc {
				d := decodeLocalDoc(m)
				return &d
			},
		}),
})

func encodeLocalDoc(d *shard.LocalDoc, m *wirepb.LocalDoc) { m.Id, m.Rev, m.Body = d.ID, d.Rev, d.Body }

func decodeLocalDoc(m *wirepb.LocalDoc) shard.LocalDoc {
	return shard.LocalDoc{ID: m.Id, Rev: m.Rev, Body: filled(m.Body)}
}
