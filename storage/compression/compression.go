// Package compression says how the blocks of tables are compressed. Tables of all methods
// can be read under any setting: each block tells how it was written.
package compression

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/sstable/block"
)

// Method is how blocks are compressed. The zero value is Fast.
type Method uint8

const (
	// Fast is the method that reads and writes fastest: minlz, on arm64 snappy.
	Fast Method = iota
	// Small is Zstandard for all blocks of rows. It applies to all levels: where ids ascend,
	// tables of a flush move down to the lowest as they are.
	Small
	// None leaves blocks as they are.
	None
)

// Named returns the method of a value of [couchdb] file_compression: its words are CouchDB's,
// and "zstd". The levels of deflate all mean Small.
func Named(word string) Method {
	switch {
	case word == "none":
		return None
	case word == "zstd", strings.HasPrefix(word, "deflate_"):
		return Small
	default:
		return Fast
	}
}

// Profile returns how tables are written.
func (m Method) Profile() *block.CompressionProfile {
	switch m {
	case None:
		return block.NoCompression
	case Small:
		// Pebble's profile falls back to the fast method where random samples of a table become
		// less than a fifth smaller: what a setting does must not depend on luck.
		p := *block.BalancedCompression
		p.AdaptiveReductionCutoffPercent = 0
		return &p
	default:
		return block.FastestCompression
	}
}
