package index

import (
	"context"

	"divan/shard"
	"divan/storage"
)

// Doc is a document of a copy on its way into an index.
type Doc struct {
	ID  string
	Seq uint64     // of its last change; 0 while the index is filled, unless asked for
	Doc *shard.Doc // the winner; nil: the document is deleted or purged, or left out

	left *DocumentError // why it is left out; nil: it is not
}

// Mapped is the result of Kind.Map for some documents.
type Mapped any

// Kind defines how an index of one kind treats documents. The manager calls the
// methods of Stages on one goroutine at a time, Map on several.
type Kind interface {
	Stages
	// Map makes of documents what Apply needs, and takes space for it before it makes
	// it. It stops after n documents when space is full, or refused for the next one.
	// An error is that of the document behind the first n: a DocumentError if the
	// document is the reason, which is asked for again, as one that is gone, if it is to
	// be left out. The documents are the caller's again when Apply has
	// returned.
	Map(ctx context.Context, docs []Doc, space *Space) (m Mapped, n int, err error)
	// Close is called when the index is not in use any more.
	Close()
}

// Stages are those of one update.
type Stages interface {
	// Begin announces about so many changes; all that was known of the store
	// before may have changed. reads says that Apply reads through its batch.
	Begin(ctx context.Context, x *storage.Index, changes uint64) (reads bool, err error)
	// Apply adds to a batch that replaces all that the index holds of the documents
	// behind the first ones, and returns how many of them. It may leave the rest for
	// the next call when the batch has become large: what the index holds of a
	// document may weigh much more than what takes its place. The batch is committed
	// before. fresh says that the index holds nothing of them; then none is left.
	Apply(b *storage.IndexBatch, m Mapped, first int, fresh bool) (n int, err error)
	// End is called when everything is applied and committed, before any waiting
	// caller is told. An update that finds nothing to do does not call Begin
	// before.
	End(ctx context.Context, x *storage.Index) error
	// Rest is called when an update is over, however it ended: nothing of the store
	// is kept, which may be closed from now on.
	Rest()
}

// Gatherer is a Kind that gains from large batches: Apply may leave what it takes out of the
// batch until Flush, and the batch is not committed with each batch of documents, but when
// more has come together or nothing comes behind.
type Gatherer interface {
	Kind
	// Flush adds to the batch what Apply left out. The batch is committed next.
	Flush(b *storage.IndexBatch) error
}

// Spec names an index and says how to make its kind.
type Spec struct {
	Name
	Design string // a design document that wants it, for Task
	Label  string // what that calls it; empty: it has no name of its own
	// Open makes the Kind; sequences says that Map always needs Doc.Seq.
	Open func(ctx context.Context) (kind Kind, sequences bool, err error)
}
