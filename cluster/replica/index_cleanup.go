package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/cluster/wire/wirepb"
	"divan/shard/index"
)

// CleanupRequest names the indexes of a type that are wanted of a copy.
type CleanupRequest struct {
	Copy string
	Type index.Type
	Keep []string // signatures
}

// IndexCleanup drops the indexes of a type of a copy that no design document wants any more.
var IndexCleanup = declare(Operation[CleanupRequest, Done]{
	Copy:  func(q CleanupRequest) string { return q.Copy },
	Needs: Present,
	Run: func(h Admitted, ctx context.Context, q CleanupRequest) (Done, error) {
		return Done{}, h.Indexes.Cleanup(ctx, q.Copy, q.Type, q.Keep)
	},
	Over: unary(wirepb.Op_INDEX_CLEANUP, wire.ClassWrite, cleanupCodec(), doneCodec()),
})

func cleanupCodec() codec[CleanupRequest, *wirepb.IndexCleanup] {
	return codec[CleanupRequest, *wirepb.IndexCleanup]{
		func(q *CleanupRequest) *wirepb.IndexCleanup {
			return &wirepb.IndexCleanup{Copy: q.Copy, Keep: q.Keep, Type: string(q.Type)}
		},
		func(m *wirepb.IndexCleanup) CleanupRequest {
			return CleanupRequest{name(m.Copy), index.Type(name(m.Type)), m.Keep}
		},
	}
}
