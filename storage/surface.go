package storage

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/storage/doc"
)

var errSurface = errors.New("storage: surface only")

// Options configure an Engine. Zero values take the defaults.
type Options struct {
	Dir        string        // data directory, made when missing
	FS         vfs.FS        // default: the operating system's
	CacheBytes int64         // block cache in bytes, default 64 MB
	MaxOpen    int           // open stores to aim at, default 400
	IdleClose  time.Duration // a store unused for so long is closed, default 10 minutes
	Logger     *zap.Logger   // default: none
}

// CreateOptions are fixed when a store is made.
type CreateOptions struct {
	// Partitioned keeps sizes per range of ids, so that Sums knows External
	// and Active of a partition.
	Partitioned bool
}

// Engine is all stores of a node.
type Engine struct{}

func NewEngine(o Options) (*Engine, error)                  { return nil, errSurface }
func (e *Engine) Run(ctx context.Context) error             { return errSurface }
func (e *Engine) Close() error                              { return errSurface }
func (e *Engine) Create(name string, o CreateOptions) error { return errSurface }
func (e *Engine) Drop(name string) error                    { return errSurface }
func (e *Engine) Names() ([]string, error)                  { return nil, errSurface }
func (e *Engine) Acquire(name string) (*Store, error)       { return nil, errSurface }
func (e *Engine) Release(s *Store)                          {}
func (e *Engine) FileSize(name string) (int64, error)       { return 0, errSurface }

// Counters are the totals of a store.
type Counters struct {
	Live, Deleted    uint64 // documents by the state of their winner
	Seq              uint64 // last update sequence
	PurgeSeq         uint64 // last purge sequence
	PurgeTrimmed     uint64 // purge entries up to this sequence are gone
	External, Active int64  // sums over all documents, bytes
}

// Store is one open shard copy.
type Store struct{}

func (s *Store) Name() string                               { return "" }
func (s *Store) UUID() [16]byte                             { return [16]byte{} }
func (s *Store) Counters() Counters                         { return Counters{} } // as of the last applied batch
func (s *Store) Err() error                                 { return nil }        // why the store has stopped, nil while it works
func (s *Store) FileSize() (int64, error)                   { return 0, nil }     // bytes on disk
func (s *Store) Record(id string) (doc.Record, bool, error) { return doc.Record{}, false, errSurface }
func (s *Store) Head(id string, h *doc.Head) (bool, error)  { return false, errSurface }
func (s *Store) Revision(id string, rev doc.Rev) (doc.Revision, bool, error) {
	return doc.Revision{}, false, errSurface
}
func (s *Store) Local(id string) ([]byte, bool, error) { return nil, false, errSurface }
func (s *Store) Snapshot() (*Snapshot, error)          { return nil, errSurface }
func (s *Store) NewBatch() *Batch                      { return nil }
func (s *Store) NewAttachment(id string, key [16]byte) (*AttachmentWriter, error) {
	return nil, errSurface
}

// OpenAttachment: length < 0 = to the end; stored bytes. io.ErrUnexpectedEOF from Read when content is shorter. fault.NotFound when there is none.
func (s *Store) OpenAttachment(id string, key [16]byte, offset, length int64) (io.ReadCloser, error) {
	return nil, errSurface
}
func (s *Store) Purges(since uint64) (*Purges, error)                         { return nil, errSurface }
func (s *Store) Compact(ctx context.Context, o CompactOptions) error          { return errSurface }
func (s *Store) Check(ctx context.Context, report func(problem string)) error { return errSurface }

// CompactOptions …
type CompactOptions struct {
	// Write runs fn with a fresh batch inside the shard's single writer, applies the batch and waits until it is durable.
	// fn is called once; Compact calls Write many times with little work each.
	Write     func(ctx context.Context, fn func(b *Batch) error) error
	PurgeKeep uint64 // newest purge entries that stay
	Progress  func(done, total uint64)
}

// Snapshot is one moment of a store. It pins the store; Close it. Point reads may be concurrent, an iterator belongs to one goroutine.
type Snapshot struct{}

func (s *Snapshot) Close() error       { return nil }
func (s *Snapshot) Seq() uint64        { return 0 } // last applied sequence at that moment
func (s *Snapshot) Counters() Counters { return Counters{} }
func (s *Snapshot) Record(id string) (doc.Record, bool, error) {
	return doc.Record{}, false, errSurface
}
func (s *Snapshot) Head(id string, h *doc.Head) (bool, error) { return false, errSurface }
func (s *Snapshot) Revision(id string, rev doc.Rev) (doc.Revision, bool, error) {
	return doc.Revision{}, false, errSurface
}
func (s *Snapshot) Docs(r Range) (*Docs, error)               { return nil, errSurface }
func (s *Snapshot) Locals(r Range) (*Locals, error)           { return nil, errSurface }
func (s *Snapshot) Changes(r SeqRange) (*Changes, error)      { return nil, errSurface }
func (s *Snapshot) CountDocs(before string) (uint64, error)   { return 0, errSurface }      // live documents with id < before
func (s *Snapshot) CountChanges(after uint64) (uint64, error) { return 0, errSurface }      // sequence entries > after
func (s *Snapshot) Sums(lo, hi string) (Sums, error)          { return Sums{}, errSurface } // ids in [lo, hi), hi "" = no bound

// Sums are totals over a range of ids. External and Active only in a partitioned store.
type Sums struct{ Live, Deleted, External, Active int64 }

// Range selects ids in [Lo, Hi); Hi "" = no bound. To include x itself end at x+"\x00".
type Range struct {
	Lo, Hi string
	Desc   bool
}

// SeqRange selects sequences in (After, Upto]; Upto 0 = no bound.
type SeqRange struct {
	After, Upto uint64
	Desc        bool
}

// Docs iterates documents, deleted ones included. for ok := it.First(); ok; ok = it.Next() {…}; then Err, Close.
// ID and Head (with its Inline) are valid until the next call.
type Docs struct{}

func (d *Docs) First() bool                 { return false }
func (d *Docs) Next() bool                  { return false }
func (d *Docs) Seek(id string) bool         { return false } // first row at or after id in the direction of the iteration
func (d *Docs) ID() []byte                  { return nil }
func (d *Docs) Head() *doc.Head             { return nil }
func (d *Docs) Record() (doc.Record, error) { return doc.Record{}, nil } // of the current row; nothing aliases the iterator
func (d *Docs) Err() error                  { return nil }
func (d *Docs) Close() error                { return nil }

// Locals iterates local documents (ids with the "_local/" prefix or without as they were put).
type Locals struct{}

func (d *Locals) First() bool   { return false }
func (d *Locals) Next() bool    { return false }
func (d *Locals) ID() []byte    { return nil }
func (d *Locals) Value() []byte { return nil }
func (d *Locals) Err() error    { return nil }
func (d *Locals) Close() error  { return nil }

// Leaf is a leaf revision in a sequence entry.
type Leaf struct {
	Rev     doc.Rev
	Deleted bool
}

// Change is one sequence entry. ID and Leaves are valid until the next call of the iterator.
type Change struct {
	Seq     uint64
	ID      []byte
	Deleted bool   // of the winner
	Leaves  []Leaf // winner first
}

// Changes iterates sequence entries.
type Changes struct{}

func (c *Changes) First() bool     { return false }
func (c *Changes) Next() bool      { return false }
func (c *Changes) Change() *Change { return nil }
func (c *Changes) Err() error      { return nil }
func (c *Changes) Close() error    { return nil }

// Purge is one entry of the purge log.
type Purge struct {
	Seq  uint64
	UUID [16]byte
	ID   string
	Revs []doc.Rev
}

// Purges iterates the purge log from since (exclusive) on.
type Purges struct{}

func (p *Purges) First() bool  { return false }
func (p *Purges) Next() bool   { return false }
func (p *Purges) Purge() Purge { return Purge{} }
func (p *Purges) Err() error   { return nil }
func (p *Purges) Close() error { return nil }

// Batch collects changes of the single writer; an encoding error is kept and returned by Apply.
type Batch struct{}

func (b *Batch) Put(old, next *doc.Record)                          {} // old nil = new id
func (b *Batch) Remove(old *doc.Record)                             {} // record and sequence entry go; bodies and attachments by DeleteRevision, DeleteAttachment or Compact
func (b *Batch) PutRevision(id string, rev doc.Rev, v doc.Revision) {}
func (b *Batch) DeleteRevision(id string, rev doc.Rev)              {}
func (b *Batch) PutAttachment(id string, key [16]byte, data []byte) {}
func (b *Batch) DeleteAttachment(id string, key [16]byte)           {} // also drops an upload that no revision refers to yet
func (b *Batch) PutLocal(id string, value []byte)                   {}
func (b *Batch) DeleteLocal(id string)                              {}
func (b *Batch) PutPurge(p Purge)                                   {}
func (b *Batch) TrimPurges(upto uint64)                             {}             // entries with Seq <= upto go
func (b *Batch) Trim(id string) error                               { return nil } // compaction of one document, in a batch without other changes of it
func (b *Batch) Empty() bool                                        { return true }
func (b *Batch) Apply() (*Commit, error)                            { return nil, errSurface } // visible, not durable
func (b *Batch) Discard()                                           {}                         // instead of Apply

// Commit is an applied batch on its way to the disk. Wait must be called once; batches become durable in the order of Apply.
type Commit struct{}

func (c *Commit) Wait() error { return errSurface }

// AttachmentWriter streams one large content. Close makes it durable, Abort drops it; one of them must be called.
type AttachmentWriter struct{}

func (w *AttachmentWriter) Write(p []byte) (int, error) { return 0, errSurface }
func (w *AttachmentWriter) Close() error                { return errSurface }
func (w *AttachmentWriter) Abort() error                { return nil }
