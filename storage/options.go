package storage

import (
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"

	"divan/storage/compression"
)

// Options configure an Engine. Zero values take the defaults.
type Options struct {
	// Dir is the data directory, made when missing.
	Dir string
	// FS is where Dir lives; default the operating system's.
	FS vfs.FS
	// CacheBytes is how many bytes the blocks and memtables of all stores may
	// take together; default 128 MB. Half of it is always left to the blocks.
	CacheBytes int64
	// MaxOpen is how many stores stay open at most while they are not in use;
	// stores in use are never closed. Default 256.
	MaxOpen int
	// MaxTables is how many tables have their files open; default 2000.
	MaxTables int
	// IdleClose closes a store that was not used for so long; default 5 minutes.
	IdleClose time.Duration
	// ReadOnly has the engine write nothing at all: stores are read as they are.
	ReadOnly bool
	// RowTables has the contents of attachments written into tables whose blocks are of
	// rows: of a chunk columns are copied four times into memory that is made anew for each,
	// rows twice. Such a table has no checksum of its footer; what the footer names has one.
	// Not for virtual time: Pebble's writer of them shares channels among all goroutines
	// of the process, and synctest allows none of another bubble. Both kinds are read.
	RowTables bool
	// Compression returns how tables are compressed that are written from now on; default
	// compression.Fast.
	Compression func() compression.Method
	// JoinIndex returns a value of an index, put together of operands of merges, damaged ones
	// too, in a shorter form that means the same. Default: values stay as they are.
	JoinIndex func(key, value []byte) []byte
	// Logger gets what happens to stores; default nothing.
	Logger *zap.Logger
}

// Defaults. An open store costs some 400 KB, its smallest memtable included, and
// without cgo all of it is garbage collected memory, which may double: 256 of
// them stay below 250 MB, next to the block cache.
const (
	// DefaultMaxOpen is how many stores stay open.
	DefaultMaxOpen   = 256
	defaultCache     = 128 << 20
	defaultMaxTables = 2000
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
		o.MaxOpen = DefaultMaxOpen
	}
	if o.MaxTables <= 0 {
		o.MaxTables = defaultMaxTables
	}
	if o.IdleClose <= 0 {
		o.IdleClose = defaultIdleClose
	}
	if o.Compression == nil {
		o.Compression = func() compression.Method { return compression.Fast }
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// CreateOptions are fixed when a store is made.
type CreateOptions struct {
	CopyID uint64 // which copy of its database the store is
	// Small has the store share an instance with others while it is small (package small).
	Small bool
	// Partitioned keeps sizes per range of ids, so that Sums knows External and
	// Active. It costs one small write more per update of a document.
	Partitioned bool
}

// compactionSlots is how many compactions run at once on the node.
func compactionSlots() int { return max(1, runtime.GOMAXPROCS(0)) }
