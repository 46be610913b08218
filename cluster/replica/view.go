package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard/index"
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
	Run: func(h Admitted, ctx context.Context, q IndexRequest) (view.Info, error) {
		return h.Views.Info(ctx, q.Copy, q.Definition)
	},
	Over: unary(wirepb.Op_VIEW_INFO, wire.ClassRead, indexCodec(), codec[view.Info, *wirepb.ViewInfo]{
		func(i *view.Info) *wirepb.ViewInfo {
			return &wirepb.ViewInfo{
				Seq: i.Seq, PurgeSeq: i.PurgeSeq, Pending: i.Pending, File: i.File, External: i.External, Active: i.Active,
				Waiting: int64(i.Waiting), Updating: i.Updating, Compacting: i.Compacting, Collation: i.Collation,
				LeftOut: i.LeftOut, Left: wireLeft(i.Left),
			}
		},
		func(m *wirepb.ViewInfo) view.Info {
			return view.Info{
				Seq: m.Seq, PurgeSeq: m.PurgeSeq, Pending: m.Pending, File: m.File, External: m.External, Active: m.Active,
				Waiting: int(m.Waiting), Updating: m.Updating, Compacting: m.Compacting, Collation: name(m.Collation),
				LeftOut: m.LeftOut, Left: leftOf(m.Left),
			}
		},
	}),
})

// ViewCompact compacts the index of a copy, as far as that is worth it.
var ViewCompact = declare(Operation[IndexRequest, Done]{
	Copy:  func(q IndexRequest) string { return q.Copy },
	Needs: Present,
	Run: func(h Admitted, ctx context.Context, q IndexRequest) (Done, error) {
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

func wireLeft(left []index.LeftOut) []*wirepb.LeftOut {
	var out []*wirepb.LeftOut
	for _, l := range left {
		out = append(out, &wirepb.LeftOut{Id: l.ID, Reason: l.Reason})
	}
	return out
}

func leftOf(left []*wirepb.LeftOut) []index.LeftOut {
	var out []index.LeftOut
	for _, l := range left {
		out = append(out, index.LeftOut{ID: name(l.Id), Reason: name(l.Reason)})
	}
	return out
}
