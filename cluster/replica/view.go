package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard/view"
)

// IndexRequest is about the index of a copy.
type IndexRequest struct {
	Copy       string
	Definition []byte // view.Definition.Text
}

// ViewInfo describes the index of a copy.
var ViewInfo = declare(Operation[IndexRequest, view.Info]{
	Copy: func(q IndexRequest) string { return q.Copy },
	Run: func(h *Held, ctx context.Context, q IndexRequest) (view.Info, error) {
		return h.Views.Info(ctx, q.Copy, q.Definition)
	},
	Over: unary(wirepb.Op_VIEW_INFO, wire.ClassRead, indexCodec(), codec[view.Info, *wirepb.ViewInfo]{
		func(i *view.Info) *wirepb.ViewInfo {
			return &wirepb.ViewInfo{
				Seq: i.Seq, PurgeSeq: i.PurgeSeq, Pending: i.Pending, File: i.File, External: i.External, Active: i.Active,
				Waiting: int64(i.Waiting), Updating: i.Updating, Compacting: i.Compacting, Collation: i.Collation,
			}
		},
		func(m *wirepb.ViewInfo) view.Info {
			return view.Info{
				Seq: m.Seq, PurgeSeq: m.PurgeSeq, Pending: m.Pending, File: m.File, External: m.External, Active: m.Active,
				Waiting: int(m.Waiting), Updating: m.Updating, Compacting: m.Compacting, Collation: name(m.Collation),
			}
		},
	}),
})

// ViewCompact compacts the index of a copy, as far as that is worth it.
var ViewCompact = declare(Operation[IndexRequest, Done]{
	Copy:  func(q IndexRequest) string { return q.Copy },
	Needs: Present,
	Run: func(h *Held, ctx context.Context, q IndexRequest) (Done, error) {
		return Done{}, h.Views.Compact(ctx, q.Copy, q.Definition)
	},
	Over: unary(wirepb.Op_VIEW_COMPACT, wire.ClassWrite, indexCodec(), doneCodec()),
})

func indexCodec() codec[IndexRequest, *wirepb.CopyDefinition] {
	return codec[IndexRequest, *wirepb.CopyDefinition]{
		func(q *IndexRequest) *wirepb.CopyDefinition {
			return &wirepb.CopyDefinition{Copy: q.Copy, Definition: q.Definition}
		},
		func(m *wirepb.CopyDefinition) IndexRequest { return IndexRequest{name(m.Copy), m.Definition} },
	}
}
