package instance

import (
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

// checkManifest returns fault.Corruption when a record of the manifest is damaged.
// One that cannot be found or read is left to Pebble.
func (i *Instance) checkManifest() error {
	name, err := atomicfs.ReadMarker(i.shared.FS, i.Dir, "manifest")
	if err != nil || name == "" {
		return nil //nolint:nilerr // Pebble says it
	}
	text, err := readAll(i.shared.FS, i.shared.FS.PathJoin(i.Dir, name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // Pebble says it
	case err != nil:
		return DiskError("read manifest", err)
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
		if room := logBlock - at%logBlock; room < plainHeader {
			size = room // nothing begins there
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

// plainChunk returns the size of the sound chunk that begins at a place, 0 if none does.
func plainChunk(text []byte, at int) int {
	if at+plainHeader > len(text) {
		return 0
	}
	size, kind := plainHeader+int(binary.LittleEndian.Uint16(text[at+4:])), text[at+kindAt]
	if kind < plainFull || kind > plainLast || size > logBlock-at%logBlock || at+size > len(text) || !sound(text[at:at+size]) {
		return 0
	}
	return size
}
