package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard"
)

// DocsByIDRequest asks for the winners of documents.
type DocsByIDRequest struct {
	Copy string
	IDs  []string
	shard.ByIDOptions
}

// DocsByID returns a row for each id of the request, of the first ones when the rest is beyond
// MaxBytes.
var DocsByID = declare(Operation[DocsByIDRequest, []shard.Row]{
	Copy: func(q DocsByIDRequest) string { return q.Copy },
	Run: func(h Admitted, ctx context.Context, q DocsByIDRequest) ([]shard.Row, error) {
		return h.Shards.DocsByID(ctx, q.Copy, q.IDs, q.ByIDOptions)
	},
	Over: unary(wirepb.Op_DOCS_BY_ID, wire.ClassRead,
		codec[DocsByIDRequest, *wirepb.DocsByIDRequest]{
			func(q *DocsByIDRequest) *wirepb.DocsByIDRequest {
				return &wirepb.DocsByIDRequest{
					Copy: q.Copy, Ids: q.IDs, IncludeDocs: q.IncludeDocs, Conflicts: q.Conflicts, MaxBytes: int64(q.MaxBytes),
				}
			},
			func(m *wirepb.DocsByIDRequest) DocsByIDRequest {
				return DocsByIDRequest{name(m.Copy), m.Ids, shard.ByIDOptions{
					IncludeDocs: m.IncludeDocs, Conflicts: m.Conflicts, MaxBytes: int(m.MaxBytes),
				}}
			},
		},
		codec[[]shard.Row, *wirepb.Rows]{
			func(a *[]shard.Row) *wirepb.Rows { return &wirepb.Rows{Rows: encodeList(*a, encodeRow)} },
			func(m *wirepb.Rows) []shard.Row { return decodeRows(nil, m.Rows) },
		},
	).each(func(q DocsByIDRequest, a []shard.Row) (int, int) {
		if q.MaxBytes > 0 && len(a) > 0 && len(a) < len(q.IDs) {
			return len(a), len(a)
		}
		return len(q.IDs), len(a)
	}),
})
