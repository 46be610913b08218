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

// ViewCleanup drops the indexes of views of a copy that no design document wants any more.
var ViewCleanup = declare(Operation[CleanupRequest, Done]{
	Copy:  func(q CleanupRequest) string { return q.Copy },
	Needs: Present,
	Run: func(h *Held, ctx context.Context, q CleanupRequest) (Done, error) {
		return Done{}, h.Indexes.Cleanup(ctx, q.Copy, index.View, q.Keep)
	},
	Over: unary(wirepb.Op_VIEW_CLEANUP, wire.ClassWrite, cleanupCodec(), doneCodec()),
})

// IndexCleanup does so for the indexes of Type. It is an operation of its own because a node
// that knows views only would drop those.
var IndexCleanup = declare(Operation[CleanupRequest, Done]{
	Copy:  func(q CleanupRequest) string { return q.Copy },
	Needs: Present,
	Run: func(h *Held, ctx context.Context, q CleanupRequest) (Done, error) {
		return Done{}, h.Indexes.Cleanup(ctx, q.Copy, q.Type, q.Keep)
	},
	Over: unary(wirepb.Op_INDEX_CLEANUP, wire.ClassWrite, cleanupCodec(), doneCodec()),
})

func cleanupCodec() codec[CleanupRequest, *wirepb.ViewCleanup] {
	return codec[CleanupRequest, *wirepb.ViewCleanup]{
		func(q *CleanupRequest) *wirepb.ViewCleanup {
			return &wirepb.ViewCleanup{Copy: q.Copy, Keep: q.Keep, Type: string(q.Type)}
		},
		func(m *wirepb.ViewCleanup) CleanupRequest {
			return CleanupRequest{name(m.Copy), index.Type(name(m.Type)), m.Keep}
		},
	}
}
