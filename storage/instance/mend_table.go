package instance

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/bitflip"
)

// mended is a table that is read with some of its bits set right.
type mended struct {
	vfs.File
	size  int64
	flips []flip
	err   error // why the disk did not read all that was asked of it
	noop  objstorage.NoopReadHandle
}

// maxFlips bounds how many bits of a table are set right: one with more is not read at all.
const maxFlips = 64

// mendTable has a table in which bits are other ones, one of each block at most, make way for one where they are set
// right, if nothing of that one is damaged: whole. A table that is gone is whole. The error is one of the disk.
func (s *files) mendTable(path string, o *pebble.Options) (whole bool, err error) {
	f, err := s.shared.FS.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if errors.Is(err, syscall.EIO) {
		err = unreadError{err}
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return false, unreadError{err}
	}
	m := &mended{File: f, size: info.Size()}
	m.noop = objstorage.MakeNoopReadHandle(m)
	o.EnsureDefaults()
	if whole = m.whole(o.MakeReaderOptions()); m.err != nil {
		return false, unreadError{m.err}
	}
	if !whole || len(m.flips) == 0 {
		return whole, nil
	}
	if err := m.replace(s.shared.FS, path); err != nil {
		return false, err
	}
	s.told(path, m.flips)
	return true, nil
}

// whole looks for the bits that are other ones, and reports whether with them nothing is damaged. Pebble trusts a block
// with the right sum: where it has that by chance, reading it may panic or read what is not its own.
func (m *mended) whole(o sstable.ReaderOptions) (whole bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			whole = false
		}
	}()
	return m.mend(o) && (len(m.flips) == 0 || m.readable(o) == nil)
}

// replace has a copy with the bits that are set right take the place of the table. The file stays as it is where it
// has other names, in a checkpoint. What a crash leaves of the copy Pebble removes by its name.
func (m *mended) replace(fs vfs.FS, path string) error {
	dir, name := fs.PathDir(path), fs.PathBase(path)
	part := fs.PathJoin(dir, "temporary."+strings.TrimSuffix(name, ".sst")+".dbtmp")
	f, err := fs.Create(part, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	for at, text := int64(0), make([]byte, min(m.size, copied)); at < m.size && err == nil; at += int64(len(text)) {
		text = text[:min(int64(len(text)), m.size-at)]
		if err = m.read(text, at); err == nil {
			_, err = f.Write(text)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fs.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, fs.Remove(part))
	}
	return SyncDir(fs, dir)
}

// copied is how much of a table is copied at once, in bytes.
const copied = 256 << 10

// readable returns why not all of the table can be read, in the order of its keys, and as much as it says that it has.
//
//nolint:contextcheck // an opening is not given up half way
func (m *mended) readable(o sstable.ReaderOptions) (err error) {
	ctx := context.Background() //nolint:forbidigo // see above
	r, err := sstable.NewReader(ctx, m, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	has, err := r.ReadPropertiesBlock(ctx, nil)
	if err != nil {
		return err
	}
	points, err := readPoints(r, o.Comparer.Compare)
	if err != nil {
		return err
	}
	ranges, err := r.NewRawRangeDelIter(ctx, sstable.NoFragmentTransforms, sstable.NoReadEnv)
	deleted := uint64(0)
	if err == nil && ranges != nil {
		defer ranges.Close()
		span, e := ranges.First()
		for ; e == nil && span != nil; span, e = ranges.Next() {
			deleted += uint64(len(span.Keys))
		}
		err = e
	}
	if err == nil && (points+has.NumRangeDeletions != has.NumEntries || deleted < has.NumRangeDeletions) {
		err = pebble.ErrCorruption
	}
	return err
}

// readPoints reads all keys with their values, and returns how many there are.
func readPoints(r *sstable.Reader, compare func(a, b []byte) int) (n uint64, err error) {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var last pebble.InternalKey
	for kv := it.First(); kv != nil; kv = it.Next() {
		order := compare(last.UserKey, kv.K.UserKey)
		if n++; n > 1 && (order > 0 || order == 0 && last.Trailer <= kv.K.Trailer) {
			return n, pebble.ErrCorruption
		}
		last.UserKey, last.Trailer = append(last.UserKey[:0], kv.K.UserKey...), kv.K.Trailer
		if _, _, err := kv.Value(nil); err != nil {
			return n, err
		}
	}
	return n, it.Error()
}

// mend sets right what it can, and reports whether no block is damaged then.
func (m *mended) mend(o sstable.ReaderOptions) (whole bool) {
	var blocks []block.Handle
	var err error
	for len(m.flips) < maxFlips { // the footer, and what names the blocks
		if blocks, err = m.blocks(o); err == nil {
			break
		}
		if !pebble.IsCorruptionError(err) {
			return false
		}
		h, named := damagedBlock(err)
		if !named && !m.mendFooter(o) || named && !m.mendBlock(h) {
			return false
		}
	}
	if err != nil { // too much is damaged
		return false
	}
	for _, h := range blocks {
		if h.Length == 0 {
			continue
		}
		text, err := m.block(h)
		if err != nil {
			return false
		}
		if block.ValidateChecksum(block.ChecksumTypeCRC32c, text, h) == nil {
			continue
		}
		if !m.mendBlock(h) || len(m.flips) >= maxFlips {
			return false
		}
	}
	return true
}

// blocks returns all blocks that the table has.
//
//nolint:contextcheck // an opening is not given up half way
func (m *mended) blocks(o sstable.ReaderOptions) (all []block.Handle, err error) {
	r, err := sstable.NewReader(context.Background(), m, o) //nolint:forbidigo // see above
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	l, err := r.Layout()
	if err != nil {
		return nil, err
	}
	all = append(l.Index, l.TopIndex, l.RangeDel, l.RangeKey, l.ValueIndex, l.Properties, l.MetaIndex)
	all = append(all, l.ValueBlock...)
	for _, h := range l.Filter {
		all = append(all, h.Handle)
	}
	for i := range l.Data {
		all = append(all, l.Data[i].Handle)
	}
	return all, nil
}

// damagedBlock returns which block an error of Pebble is about.
func damagedBlock(err error) (h block.Handle, ok bool) {
	found := regexp.MustCompile(`block (\d+)/(\d+): crc32c checksum mismatch`).FindStringSubmatch(err.Error())
	if found == nil {
		return h, false
	}
	h.Offset, _ = strconv.ParseUint(found[1], 10, 64)
	h.Length, _ = strconv.ParseUint(found[2], 10, 64)
	return h, true
}

// block reads a block with its trailer.
func (m *mended) block(h block.Handle) ([]byte, error) {
	if h.Offset+h.Length+block.TrailerLen > uint64(m.size) {
		return nil, pebble.ErrCorruption
	}
	text := make([]byte, h.Length+block.TrailerLen)
	return text, m.read(text, int64(h.Offset))
}

// largestMended is how long a block may be of which a bit is set right, in bytes. In a longer one,
// such as a filter, a single bit fits the sum by chance too often when more than a bit is wrong.
const largestMended = 64 << 10

// mendBlock sets a bit of a block right, and reports whether it could.
func (m *mended) mendBlock(h block.Handle) bool {
	if h.Length > largestMended {
		return false
	}
	text, err := m.block(h)
	if err != nil {
		return false
	}
	sum := h.Length + block.TrailerLen - 4
	at, mask, ok := bitflip.FindStored(text[:sum], binary.LittleEndian.Uint32(text[sum:]))
	if ok {
		m.flips = append(m.flips, flip{int64(h.Offset) + int64(at), mask})
	}
	return ok
}

// footer is as long as that of a table is at most.
const footer = 61

// mendFooter sets that bit of the footer right with which the table can be opened, or is told which
// block is damaged.
func (m *mended) mendFooter(o sstable.ReaderOptions) bool {
	last := len(m.flips)
	for at := max(m.size-footer, 0); at < m.size; at++ {
		for bit := range 8 {
			m.flips = append(m.flips[:last], flip{at, 1 << bit})
			if _, err := m.blocks(o); err == nil {
				return true
			}
		}
	}
	m.flips = m.flips[:last]
	return false
}

// ReadAt implements objstorage.Readable.
func (m *mended) ReadAt(_ context.Context, p []byte, off int64) error { return m.read(p, off) }

// read reads the table as it is with the bits that are set right.
func (m *mended) read(p []byte, off int64) error {
	n, err := m.File.ReadAt(p, off)
	if n == len(p) {
		err = nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	for _, fl := range m.flips {
		if i := fl.at - off; i >= 0 && i < int64(n) {
			p[i] ^= fl.mask
		}
	}
	return err
}

// Close implements objstorage.Readable: mendTable closes the file.
func (m *mended) Close() error { return nil }

// Size implements objstorage.Readable.
func (m *mended) Size() int64 { return m.size }

// NewReadHandle implements objstorage.Readable.
func (m *mended) NewReadHandle(objstorage.ReadBeforeSize) objstorage.ReadHandle { return &m.noop }
