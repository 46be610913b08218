// Package archive is the format of a backup repository (FORMAT.md): packs, pages, headers and
// the other objects, with their names. It also holds the decisions that follow from them: when a
// range gets a new base, which backups are kept, which objects may be removed. It knows no
// files, no network and no clock.
//
// A pack is written as a stream and read by parts; in both directions memory holds one block of
// its index. Pages and the JSON objects are bounded and come as a whole.
//
// Objects are transformed (encrypted, say) as whole streams: writers of this package write into
// the transformation, which writes into a [Measure], which writes to the target. Readers take
// plain bytes, so an [io.ReaderAt] of a pack has to undo the transformation. Sizes and sums of an
// [Object] are those of the stored bytes, all others those of the plain ones.
//
// Parsers believe nothing of what they read: lengths are bounded by what is there before memory
// is taken, and errors are of the kind [fault.Corruption].
package archive

import "divan/storage/fault"

// Format is the version of the format.
const Format = 1

// valueVersion is the first byte of a page and of a block of an index.
const valueVersion = 0x10

func damaged(what string) error {
	return fault.New(fault.Corruption, "The backup is damaged: "+what+".")
}
