package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// DocsByIDRequest asks for the winners of documents.
type DocsByIDRequest struct {
	Copy        string
	IDs         []string
	IncludeDocs bool
	Conflicts   bool // with IncludeDocs: fill in Doc.Conflicts
}

// DocsByID returns a row for each id of the request.
var DocsByID = declare(Operation[DocsByIDRequest, []shard.Row]{
	Copy: func(q DocsByIDRequest) string { return q.Copy },
	Run: func(h *Held, ctx context.Context, q DocsByIDRequest) ([]shard.Row, error) {
		return h.Shards.DocsByID(ctx, q.Copy, q.IDs, q.IncludeDocs, q.Conflicts)
	},
	Over: unary(wirepb.Op_DOCS_BY_ID, wire.ClassRead,
		codec[DocsByIDRequest, *wirepb.DocsByIDRequest]{
			func(q *DocsByIDRequest) *wirepb.DocsByIDRequest {
				return &wirepb.DocsByIDRequest{Copy: q.Copy, Ids: q.IDs, IncludeDocs: q.IncludeDocs, Conflicts: q.Conflicts}
			},
			func(m *wirepb.DocsByIDRequest) DocsByIDRequest {
				return DocsByIDRequest{name(m.Copy), m.Ids, m.IncludeDocs, m.Conflicts}
			},
		},
		codec[[]shard.Row, *wirepb.Rows]{
			func(a *[]shard.Row) *wirepb.Rows { return &wirepb.Rows{Rows: encodeList(*a, encodeRow)} },
			func(m *wirepb.Rows) []shard.Row { return decodeRows(nil, m.Rows) },
		},
	).each(func(q DocsByIDRequest, a []shard.Row) (int, int) { return len(q.IDs), len(a) }),
})
