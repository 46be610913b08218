package storage

import (
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
)

// Options configure an Engine. Zero values take the defaults.
type Options struct {
	// Dir is the data directory, made when missing.
	Dir string
	// FS is where Dir lives; default the operating system's.
	FS vfs.FS
	// CacheBytes is what blocks and memtables of all stores may take together;
	// default 128 MB. Blocks keep half of it whatever the memtables take.
	CacheBytes int64
	// MaxOpen is how many stores stay open at most while nobody uses them;
	// stores in use are never closed. Default 256.
	MaxOpen int
	// IdleClose closes a store that was not used for so long; default 5 minutes.
	IdleClose time.Duration
	// Logger gets what happens to stores; default nothing.
	Logger *zap.Logger
}

// Defaults. An open store costs some 400 KB, its smallest memtable included, and
// without cgo all of it is garbage collected memory, which may double: 256 of
// them stay below 250 MB, next to the block cache.
const (
	defaultCache     = 128 << 20
	defaultMaxOpen   = 256
	defaultIdleClose = 5 * time.Minute
)

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = defaultCache
	}
	if o.MaxOpen <= 0 {
		o.MaxOpen = defaultMaxOpen
	}
	if o.IdleClose <= 0 {
		o.IdleClose = defaultIdleClose
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// CreateOptions are fixed when a store is made.
type CreateOptions struct {
	// Partitioned keeps sizes per range of ids, so that Sums knows External and
	// Active. It costs one small write more per update of a document.
	Partitioned bool
	// Rebuilding makes the store as one that Engine.Rebuilding is true of.
	Rebuilding bool
}

// Sizes in bytes. The header that Pebble puts before a block in the cache is
// taken off, so that the two fill a size class of Go's allocator: one byte more
// would take a tenth more of the cache.
const (
	memTableBytes = 8 << 20   // grows from idleMemTable by doubling
	idleMemTable  = 256 << 10 // what an open store always holds
	blockHeader   = 336
	blockBytes    = 8<<10 - blockHeader
	indexBytes    = 32<<10 - blockHeader
)

// pebbleOptions are the options of one store. Everything shared comes from the
// engine; the rest is measured (1 KB documents, two cores).
func (e *Engine) pebbleOptions(s *Store) *pebble.Options {
	listener := s.events()
	o := &pebble.Options{
		Cache:                       e.memory.cache,
		FileCache:                   e.files,
		FS:                          s.newFS(),
		Logger:                      pebbleLogger{s},
		EventListener:               listener,
		Merger:                      sumsMerger(),
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 2,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       20,
		WALMinSyncInterval:          e.syncInterval,
		CompactionConcurrencyRange:  func() (int, int) { return 1, e.scheduler.Slots() },
	}
	o.Experimental.CompactionScheduler = s.compactions
	o.Experimental.SpanPolicyFunc = s.spanPolicy
	o.Experimental.ReadSamplingMultiplier = -1 // no compactions because of reads
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockBytes
		o.Levels[i].IndexBlockSize = indexBytes
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	// Zstandard costs 2.4 times as much to read without cgo, which is how the
	// program is built; minlz is the same in both.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionFastest })
	return o
}

// compactionSlots is how many compactions run at once on the node.
func compactionSlots() int { return max(1, runtime.GOMAXPROCS(0)) }
