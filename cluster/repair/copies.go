package repair

import (
	"context"

	"divan/shard"
)

// Copies is the copies that one node holds, as a push needs them: those of
// another node, or a *shard.Local. Errors are those of shard.Local;
// fault.NodeDown says that the node cannot be reached.
type Copies interface {
	documents
	purger
	contents
}

// documents asks what a copy has and writes to it.
type documents interface {
	LocalGetter
	Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error)
	Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error)
	Open(ctx context.Context, req shard.OpenRequest) (*shard.Doc, error)
	Update(ctx context.Context, req shard.UpdateRequest) ([]shard.EditResult, error)
}

// purger reads and extends the log of purges.
type purger interface {
	Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error)
	Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error)
}

// contents stores large attachments.
type contents interface {
	PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error)
	DropAttachments(ctx context.Context, name, id string, keys [][16]byte) error
}

// putLocal writes a local document of the server itself.
func putLocal(ctx context.Context, to Copies, name, id string, body []byte) error {
	results, err := to.Update(ctx, shard.UpdateRequest{
		Copy: name, Edits: []shard.Edit{{ID: id, Body: body}}, Trusted: true, NoPath: true,
	})
	if err != nil {
		return err
	}
	return results[0].Err
}
