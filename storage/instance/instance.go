// Package instance opens the Pebble instances of a node, one per store, so that
// thousands of them get along: they share what memory and files they hold and
// the slots of their compactions, cost little while they are idle, and a failing
// disk stops the one that it hits and not the process.
package instance

import (
	"context"
	"errors"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/storage/compression"
	"divan/storage/fault"
	"divan/storage/scheduler"
)

// PebbleFormat is the format of Pebble that new instances have. It does not follow Pebble's
// newest: a store that a release has opened stays readable for the release before
// (docs/compatibility.md). An instance of a newer format keeps it.
const PebbleFormat = pebble.FormatValueSeparation

// Shared holds what the instances of a node have in common.
type Shared struct {
	FS        vfs.FS
	Memory    *MemoryBudget
	Files     *pebble.FileCache
	Scheduler *scheduler.Scheduler
	// SyncInterval is how long a log waits between two syncs.
	SyncInterval func() time.Duration
	// Compression returns how tables are compressed that open instances write.
	Compression func() compression.Method
	// TableSpace, when set, is asked every spaceStep of a table that an open instance
	// writes; its error says that there is no space for more. derived is Kind.Derived.
	TableSpace func(derived, compaction bool) error
	// Pending, when set, is told how many bytes more, or fewer, instances have in memory
	// that Committing has announced.
	Pending func(bytes int64)
	Mending Mending
}

// Kind describes how the instances of one kind of store differ from others.
type Kind struct {
	Merger *pebble.Merger // nil: none
	// TableEnd returns the key at which a table that begins with start has to
	// end, nil for none. It is asked once the instance is written to in earnest.
	TableEnd func(start []byte) []byte
	Log      bool // a write-ahead log: what was synced survives a crash
	Filters  bool // bloom filters: keys that are not there are asked for
	Derived  bool // all of it can be made again from another store
	Shared   bool // by many stores: damage does not stop it, but fails what reads it
}

// Instance is the Pebble instance of one store, opened once. Until then it may
// read from one that is shared.
type Instance struct {
	Dir string

	shared      *Shared
	log         *zap.Logger
	compactions *scheduler.StoreScheduler
	db          atomic.Pointer[pebble.DB]
	own         atomic.Bool // db is the instance's own
	memtables   memtables
	unwritten   Unwritten
	closing     chan struct{}
	quit        chan struct{} // closed when opening has failed
	failed      failureCell
	flushErr    atomic.Pointer[failure] // of the last flush that reported one
	damaged     atomic.Bool
	kind        Kind // once it is opened
	readOnly    bool
	unsynced    atomic.Bool // a log could not be synced
	files       *files
	unfinished  unfinished
	nowhere     nowhere
	health      Health
}

// New returns an instance that is not open. Close must be called. One that is only
// read writes nothing at all: what its log holds is kept in memory.
func (sh *Shared) New(dir string, log *zap.Logger, readOnly bool) *Instance {
	found := &files{shared: sh, dir: dir, log: log}
	compactions := sh.Scheduler.ForStore()
	return &Instance{
		readOnly: readOnly,
		Dir:      dir, shared: sh, log: log, compactions: compactions, files: found,
		health: Health{files: found, compactions: compactions}, unwritten: Unwritten{pending: sh.Pending},
		closing: make(chan struct{}), quit: make(chan struct{}), failed: failureCell{set: make(chan struct{})},
	}
}

// Borrow makes the instance read from another one until it is opened.
func (i *Instance) Borrow(db *pebble.DB) { i.db.Store(db) }

// DB returns what to read from, nil when nothing was opened or borrowed.
func (i *Instance) DB() *pebble.DB { return i.db.Load() }

// Opened reports whether the instance is open.
func (i *Instance) Opened() bool { return i.own.Load() }

// ReadOnly reports whether the instance takes no writes, which end with a failure.
func (i *Instance) ReadOnly() bool { return i.readOnly }

// Unsynced reports whether a log could not be synced: what it shows when it is read
// again may not be on the disk.
func (i *Instance) Unsynced() bool { return i.unsynced.Load() }

// Damaged reports whether a file was found to be damaged, which stops the
// instance.
func (i *Instance) Damaged() bool { return i.damaged.Load() }

// GivenUp returns what opening gave up of a log, nil when that was nothing.
func (i *Instance) GivenUp() *GivenUp { return i.files.givenUp.Load() }

// Health returns how the instance is.
func (i *Instance) Health() *Health { return &i.health }

// Unwritten returns what of an instance without a log is in memory.
func (i *Instance) Unwritten() *Unwritten { return &i.unwritten }

// Busy reports whether a compaction runs, which Close would wait for.
func (i *Instance) Busy() bool { return i.compactions.Busy() }

// Open opens the instance. load is called before any other goroutine sees it.
// The error is fault.Corruption when the files are damaged.
func (i *Instance) Open(k Kind, load func(*pebble.DB) error) error {
	if i.readOnly {
		if err := i.files.syncLogs(); err != nil {
			return DiskError("sync logs", err)
		}
	}
	files, err := i.shared.FS.List(i.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return DiskError("list files of a shard", err)
	}
	if err := i.mend(k, files); err != nil {
		return err
	}
	if err := i.files.checkManifest(i.readOnly); err != nil {
		return err
	}
	if k.Log {
		if err := i.files.checkLog(files); err != nil {
			return err
		}
	}
	i.kind = k
	i.compactions.SetDerived(k.Derived)
	db, err := pebble.Open(i.Dir, i.options(k))
	i.memtables.opened(i.shared.Memory)
	if err != nil {
		i.memtables.closed(i.shared.Memory)
		if pebble.IsCorruptionError(err) {
			return fault.Wrap(fault.Corruption, "The shard's files are damaged.", err)
		}
		return DiskError("open store", err)
	}
	err = i.Err()
	if err == nil {
		if err = load(db); pebble.IsCorruptionError(err) && !fault.Is(err, fault.Corruption) {
			err = fault.Wrap(fault.Corruption, "The shard's files are damaged.", err)
		} else if err != nil {
			err = DiskError("read store", err)
		}
	}
	if err != nil {
		close(i.quit)
		err = errors.Join(err, db.Close())
		i.memtables.closed(i.shared.Memory)
		return err
	}
	i.db.Store(db)
	i.own.Store(true)
	return nil
}

// mend sets right what bits of the files are other ones than their checksums say.
func (i *Instance) mend(k Kind, files []string) error {
	if i.readOnly || k.Derived {
		return nil
	}
	if k.Log {
		if err := i.files.mendLogs(files); err != nil {
			return DiskError("look for flipped bits", err)
		}
	}
	i.health.righted.Store(i.files.mendTables(func() *pebble.Options { return i.options(k) }))
	return nil
}

// Close closes the instance when it is open.
func (i *Instance) Close() error {
	close(i.closing)
	if !i.Opened() {
		return nil
	}
	err := i.DB().Close()
	i.memtables.closed(i.shared.Memory)
	i.unwritten.flushBegins(math.MaxInt64 / 2)
	i.unwritten.flushEnds()
	return err
}

// Flush makes durable what was written to an open instance without a log. Like
// Compact it ends when the instance fails.
func (i *Instance) Flush() error {
	flushed, err := i.DB().AsyncFlush()
	if err != nil {
		return i.failureOr(err)
	}
	select {
	case <-flushed:
	case <-i.Failed():
	}
	return i.Err()
}

// Compact compacts the files of an open instance. It ends when stop is closed (nil: it is not), and when
// the instance fails: Pebble would wait for ever for a flush that it repeats for ever, and the store
// stay pinned.
func (i *Instance) Compact(ctx context.Context, stop <-chan struct{}, lo, hi []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		defer cancel()
		select {
		case <-i.Failed():
		case <-stop:
		case <-ctx.Done():
		}
	})
	if err := i.DB().Compact(ctx, lo, hi, false); err != nil {
		return i.failureOr(err)
	}
	return nil
}

// failureOr returns why the instance has stopped, or else err.
func (i *Instance) failureOr(err error) error {
	if failure := i.Err(); failure != nil {
		return failure
	}
	return err
}

// FileSize returns the bytes that an open instance keeps: in files, in what its log
// holds and no table does yet, and without a log in memory. Tables that are not used any
// more and logs that will be written over do not count: they come and go with the work
// in the background, and a compaction would seem to make the store larger.
func (i *Instance) FileSize() int64 {
	if !i.Opened() {
		return 0
	}
	m := i.DB().Metrics()
	idle := m.WAL.PhysicalSize + m.WAL.ObsoletePhysicalSize + m.Table.Local.ObsoleteSize + m.BlobFiles.Local.ObsoleteSize
	return int64(m.DiskSpaceUsage()-idle+m.WAL.Size) + i.unwritten.Bytes()
}

// Sizes in bytes. The header that Pebble puts before a block in the cache is
// taken off, so that the two fill a size class of Go's allocator: one byte more
// would take a tenth more of the cache.
const (
	memTableBytes = 8 << 20   // grows from IdleMemTable by doubling
	IdleMemTable  = 256 << 10 // what an open instance always holds
	blockHeader   = 336
	blockBytes    = 8<<10 - blockHeader
	indexBytes    = 32<<10 - blockHeader
)

// options are the options of one instance. Everything shared comes from the
// node; the rest is measured (1 KB documents, two cores).
func (i *Instance) options(k Kind) *pebble.Options {
	sublevels := 4 // of L0, until they are compacted
	if k.Derived {
		sublevels = 2 // indexes are read in ranges, which goes through each
	}
	o := &pebble.Options{
		Cache:                       i.shared.Memory.Cache,
		FileCache:                   i.shared.Files,
		FS:                          &instanceFS{FS: i.shared.FS, i: i},
		ReadOnly:                    i.readOnly,
		Logger:                      pebbleLogger{i},
		EventListener:               i.events(),
		Merger:                      k.Merger,
		DisableWAL:                  !k.Log,
		DisableTableStats:           !i.health.Mended(), // Pebble would try to read those of damaged tables without a pause
		FormatMajorVersion:          PebbleFormat,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 2,
		L0CompactionThreshold:       sublevels,
		L0StopWritesThreshold:       neverStall,
		WALMinSyncInterval:          i.shared.SyncInterval,
		CompactionConcurrencyRange:  func() (int, int) { return 1, i.shared.Scheduler.Slots() },
	}
	o.Experimental.CompactionScheduler = i.compactions
	o.Experimental.SpanPolicyFunc = i.spanPolicy(k)
	o.Experimental.ReadSamplingMultiplier = -1 // no compactions because of reads
	for l := range o.Levels {
		o.Levels[l].BlockSize = blockBytes
		o.Levels[l].IndexBlockSize = indexBytes
		if k.Filters {
			o.Levels[l].FilterPolicy = bloom.FilterPolicy(10)
		}
		o.Levels[l].Compression = func() *block.CompressionProfile { return i.shared.Compression().Profile() }
	}
	return o
}

// WriterOptions are for tables that are made outside of the open instance, to be
// ingested.
func (i *Instance) WriterOptions(k Kind) sstable.WriterOptions {
	o := i.options(k)
	o.EnsureDefaults()
	return o.MakeWriterOptions(len(o.Levels)-1, i.DB().TableFormat())
}

// ReaderOptions are for tables that were made outside of the open instance.
func (i *Instance) ReaderOptions(k Kind) sstable.ReaderOptions {
	o := i.options(k)
	o.EnsureDefaults()
	return o.MakeReaderOptions()
}

// splitTables is the size of memtables from which on a flush or compaction makes
// tables of one keyspace each. Smaller stores keep one table for everything:
// there may be tens of thousands of them.
const splitTables = 2 << 20

// spanPolicy decides on the borders of tables; only they are its business.
//
// A table that begins with the newest keys of one keyspace and ends with the
// newest of another covers all keys between them, so that moving it down a level
// would write everything again that the store has in those keyspaces. Tables of
// one keyspace move without being written again wherever keys ascend.
func (i *Instance) spanPolicy(k Kind) pebble.SpanPolicyFunc {
	return func(start []byte) (policy pebble.SpanPolicy, end []byte, err error) {
		if i.SplitsTables() {
			end = k.TableEnd(start)
		}
		return policy, end, nil
	}
}

// SplitsTables reports whether the instance was written to so much that it is
// worth to keep its keyspaces in tables of their own.
func (i *Instance) SplitsTables() bool { return i.memtables.large() }

// MemtableSurplus returns how many bytes of memory the store would give back if it were
// closed and opened again.
func (i *Instance) MemtableSurplus() int64 { return i.memtables.surplus() }
