package instance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"divan/storage/fault"
)

// The manifest says which tables there are. Pebble reads it up to the first record
// that is not sound, takes that for a write that a crash cut off, and removes all
// tables that it has not read of. But each record is synced before the next one is
// written: where another one begins behind it, the record is damaged.

// checkManifest sets a bit of the manifest right, and returns fault.Corruption when a record is damaged.
// One that cannot be found or read is left to Pebble.
func (s *files) checkManifest(readOnly bool) error {
	name, err := atomicfs.ReadMarker(s.shared.FS, s.dir, "manifest")
	if err != nil || name == "" {
		return nil //nolint:nilerr // Pebble says it
	}
	text, err := readAll(s.shared.FS, s.shared.FS.PathJoin(s.dir, name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // Pebble says it
	case err != nil:
		return DiskError("read manifest", err)
	}
	if !readOnly {
		flips, err := mendChunks(bytes.NewReader(text), manifestChunks{})
		if err == nil {
			err = s.write(s.shared.FS.PathJoin(s.dir, name), flips)
		}
		if err != nil {
			return DiskError("write manifest", err)
		}
		for _, fl := range flips {
			text[fl.at] ^= fl.mask
		}
	}
	if at, damaged := damagedRecord(text); damaged {
		return fault.Wrap(fault.Corruption, "The shard's files are damaged.", fmt.Errorf("the record at offset %d of %s cannot be read", at, name))
	}
	return nil
}

func readAll(fs vfs.FS, path string) (text []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text = make([]byte, info.Size())
	n, err := f.ReadAt(text, 0)
	if n == len(text) {
		err = nil
	}
	return text[:n], err
}

// The chunks of a manifest are those of a log in its oldest format, without its number.
const (
	plainHeader = 7
	plainFull   = 1
	plainFirst  = 2
	plainLast   = 4
)

// damagedRecord returns where the first chunk that is not sound begins, and whether a
// record begins behind it.
func damagedRecord(manifest []byte) (at int, damaged bool) {
	for at < len(manifest) {
		size := plainChunk(manifest, at)
		if space := logBlock - at%logBlock; space < plainHeader {
			size = space // nothing begins there
		}
		if size == 0 {
			break
		}
		at += size
	}
	for next := at + 1; next < len(manifest); next++ {
		if size := plainChunk(manifest, next); size > 0 && manifest[next+kindAt] <= plainFirst {
			return at, true
		}
	}
	return 0, false
}

// manifestChunks is the chunks of a manifest.
type manifestChunks struct{}

func (manifestChunks) claimed(block []byte, at int) int {
	if at+plainHeader > len(block) {
		return 0
	}
	size, kind := plainHeader+int(binary.LittleEndian.Uint16(block[at+4:])), block[at+kindAt]
	if kind < plainFull || kind > plainLast || at+size > len(block) {
		return 0
	}
	return size
}

// synced is right as a record is written when those before it are durable.
func (manifestChunks) synced(chunk []byte, offset int64) int64 {
	if chunk[kindAt] <= plainFirst {
		return offset
	}
	return 0
}

// ended is right as a part of the file that was not written is zeros: a manifest is a file of its own.
func (manifestChunks) ended([]byte, int) bool { return true }

func (manifestChunks) torn(block []byte, at, end int) bool { return zeroSector(block, at, end) }

// plainChunk returns the size of the sound chunk that begins at a place of a manifest, 0 if none does.
func plainChunk(text []byte, at int) int {
	begin := at / logBlock * logBlock
	return soundChunk(manifestChunks{}, text[begin:min(begin+logBlock, len(text))], at-begin)
}
