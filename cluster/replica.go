package cluster

import (
	"context"
	"io"

	"divan/cluster/repair"
	ops "divan/cluster/replica"
	"divan/cluster/sequence"
	"divan/shard"
)

// ownReplica is the copies on this node's disk.
type ownReplica interface {
	replica
	repair.Holder
	// CreateMissing makes a copy whose database exists and which others nodes
	// hold as well, so that it has to be filled first.
	CreateMissing(ctx context.Context, name string, o shard.CreateOptions, others int) error
	Has(name string) bool
}

// replica is the copies that one node holds: this one's, guarded and called
// directly, or another node's. Copies are named as in the shard map. An error
// that is no *fault.Error, or one of the kinds that quorum.Usable excludes,
// says that the copy could not answer; fault.NoCopy that the
// node does not hold it.
type replica interface {
	writer
	reader
	lister
	contents
	keeper
}

// writer changes documents.
type writer interface {
	Update(ctx context.Context, req shard.UpdateRequest) ([]shard.EditResult, error)
	Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error)
}

// reader reads documents by id.
type reader interface {
	Open(ctx context.Context, req shard.OpenRequest) (*shard.Doc, error)
	OpenRevs(ctx context.Context, req shard.OpenRevsRequest) ([]shard.RevResult, error)
	// OpenRevsMany answers several requests in one message, each with its own
	// error.
	OpenRevsMany(ctx context.Context, reqs []shard.OpenRevsRequest) ([][]shard.RevResult, []error, error)
	Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error)
	DocsByID(ctx context.Context, name string, ids []string, includeDocs, conflicts bool) ([]shard.Row, error)
}

// contents stores and reads what is not in the tree of a document: the content
// of attachments, and local documents.
type contents interface {
	LocalGet(ctx context.Context, name, id string) (*shard.LocalDoc, error)
	PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error)
	ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error)
	DropAttachments(ctx context.Context, name, id string, keys [][16]byte) error
}

// keeper makes, removes, describes and compacts copies.
type keeper interface {
	Create(ctx context.Context, name string, o shard.CreateOptions) error
	Drop(ctx context.Context, name string) error
	Info(ctx context.Context, name string) (shard.Info, error)
	Partition(ctx context.Context, name, partition string) (shard.PartitionInfo, error)
	Compact(ctx context.Context, name string, l shard.Limits, db string) error
}

// lister reads many documents. Streams end early with an error when ctx does,
// and hold what they read from until they are closed.
type lister interface {
	AllDocs(ctx context.Context, req shard.DocsRequest) (docsHead, docStream, error)
	LocalDocs(ctx context.Context, req shard.LocalDocsRequest) (localStream, error)
	Changes(ctx context.Context, req shard.ChangesRequest) (sequence.Head, changeStream, error)
	Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error)
	observer
}

// observer tells when a copy moves on.
type observer interface {
	// Watch sends a value to c, which has room for one, whenever the copy's
	// durable sequence has moved, and when the copy is dropped. Read the copy
	// after Watch to miss nothing.
	Watch(name string, c chan struct{}) (io.Closer, error)
	// Position returns which copy it is and its durable sequence.
	Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error)
}

// docsHead is what a copy tells about a listing before its rows.
type docsHead = ops.DocsHead

// docStream is a listing of one copy; more is false when no batch follows.
type docStream = ops.Stream[shard.RowBatch]

// localStream is a listing of one copy's local documents.
type localStream = ops.Stream[shard.LocalBatch]

// changeStream is a feed of one copy. Pending counts the changes after a
// sequence in its direction, filters not applied.
type changeStream interface {
	ops.Stream[shard.ChangeBatch]
	Pending(after uint64) (uint64, error)
}

// localCopies is the copies of this node.
type localCopies struct {
	ops.Methods
	*ops.Local
}

// Do implements ops.Copies.
func (l localCopies) Do(ctx context.Context, c ops.Call) error { return l.Local.Do(ctx, c) }

// Changes implements lister.
func (l localCopies) Changes(ctx context.Context, req shard.ChangesRequest) (sequence.Head, changeStream, error) {
	head, feed, err := l.Methods.Changes(ctx, req)
	return head, feed, err
}

func ownCopies(l *shard.Local) localCopies {
	own := ops.NewLocal(l)
	return localCopies{ops.Methods{Copies: own}, own}
}

// closer makes a function an io.Closer.
type closer func()

// Close implements io.Closer.
func (f closer) Close() error {
	f()
	return nil
}
