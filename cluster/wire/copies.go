package wire

import (
	"context"
	"io"

	"divan/shard"
)

// Copies is what a node serves of its copies: *shard.Local, or what guards it.
type Copies interface {
	Writer
	Reader
	Lister
	Keeper
	Observer
}

// Writer changes documents and stores the content of attachments; see
// *shard.Local.
type Writer interface {
	Update(ctx context.Context, req shard.UpdateRequest) ([]shard.EditResult, error)
	Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error)
	PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error)
	DropAttachments(ctx context.Context, name, id string, keys [][16]byte) error
}

// Reader reads documents by id; see *shard.Local.
type Reader interface {
	Open(ctx context.Context, req shard.OpenRequest) (*shard.Doc, error)
	OpenRevs(ctx context.Context, req shard.OpenRevsRequest) ([]shard.RevResult, error)
	Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error)
	DocsByID(ctx context.Context, name string, ids []string, includeDocs, conflicts bool) ([]shard.Row, error)
	LocalGet(ctx context.Context, name, id string) (*shard.LocalDoc, error)
}

// Lister reads what may be long; see *shard.Local.
type Lister interface {
	AllDocs(ctx context.Context, req shard.DocsRequest) (*shard.DocStream, error)
	LocalDocs(ctx context.Context, req shard.LocalDocsRequest) (*shard.LocalStream, error)
	Changes(ctx context.Context, req shard.ChangesRequest) (*shard.ChangeStream, error)
	Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error)
	ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error)
}

// Keeper makes, removes, describes and compacts copies; see *shard.Local.
type Keeper interface {
	Create(ctx context.Context, name string, o shard.CreateOptions) error
	Drop(ctx context.Context, name string) error
	Info(ctx context.Context, name string) (shard.Info, error)
	Partition(ctx context.Context, name, partition string) (shard.PartitionInfo, error)
	Compact(ctx context.Context, name string, l shard.Limits, db string) error
}

// Observer tells when a copy moves on; see *shard.Local.
type Observer interface {
	WatchOn(name string, c chan struct{}) (*shard.Watch, error)
	Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error)
}

var _ Copies = (*shard.Local)(nil)
