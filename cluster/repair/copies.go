package repair

import (
	"context"
	"io"

	"divan/shard"
)

// Copies is the copies that one node holds, as a Copier needs them. Errors are
// those of shard.Local; fault.NodeDown says that the node cannot be reached.
type Copies interface {
	documents
	purger
	contents
}

// documents reads and writes documents.
type documents interface {
	LocalGetter
	Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error)
	Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error)
	// OpenRevsMany answers several requests, each with its own error.
	OpenRevsMany(ctx context.Context, reqs []shard.OpenRevsRequest) ([][]shard.RevResult, []error, error)
	Update(ctx context.Context, req shard.UpdateRequest) ([]shard.EditResult, error)
}

// purger reads and extends the log of purges.
type purger interface {
	Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error)
	Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error)
}

// contents reads and stores attachments.
type contents interface {
	PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error)
	ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error)
}

// putLocal writes a local document of the server itself.
func putLocal(ctx context.Context, to *End, id string, body []byte) error {
	results, err := to.Copies.Update(ctx, shard.UpdateRequest{
		Copy: to.Name, Edits: []shard.Edit{{ID: id, Body: body}}, Trusted: true, NoPath: true,
	})
	if err != nil {
		return err
	}
	return results[0].Err
}
