package instance

import (
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"strings"

	"divan/storage/bitflip"
)

// A write that a loss of power cut off looks, once in many thousand times, as if a single bit of it were another
// one. So a bit of a log or a manifest is set right only where the write that has it is known to have ended: a sound
// chunk behind it says so, or, at the end of a file that was written on or closed, all sectors of it were written.

// mendLogs sets right what can be of the logs.
func (s *files) mendLogs(names []string) error {
	newest := uint64(0)
	for _, name := range names {
		if number, ok := logNumber(name); ok {
			newest = max(newest, number)
		}
	}
	for _, name := range names {
		number, ok := logNumber(name)
		if !ok {
			continue
		}
		if err := s.mendLog(s.shared.FS.PathJoin(s.dir, name), uint32(number), number < newest); err != nil {
			return err
		}
	}
	return nil
}

// mendLog sets right what can be of a log. ended: a later one was begun.
func (s *files) mendLog(path string, number uint32, ended bool) error {
	f, err := s.shared.FS.Open(path)
	if err != nil {
		return err
	}
	flips, err := mendChunks(f, logChunks{number, ended})
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.write(path, flips)
	}
	return err
}

// logNumber returns the number of a log.
func logNumber(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, ".log")
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil
}

// chunks is how the chunks of a file are. All places are those of a block.
type chunks interface {
	// claimed returns how long a chunk is that begins at a place, as its header has it, 0: it is none.
	claimed(block []byte, at int) int
	// synced returns up to which offset the file was durable when a sound chunk was written that begins at
	// an offset of it.
	synced(chunk []byte, offset int64) int64
	// ended reports whether no write is under way where reading has stopped.
	ended(block []byte, at int) bool
	// torn reports whether a part of a chunk has what was there before.
	torn(block []byte, at, end int) bool
}

// logChunks is those of a log.
type logChunks struct {
	number uint32
	later  bool // another log was begun, when this one was durable
}

func (l logChunks) claimed(block []byte, at int) int {
	size, own := chunk(block, int64(at), l.number)
	if kind := at + kindAt; !own || at+int(size) > len(block) || block[kind] < fullKind || block[kind] > lastKind {
		return 0
	}
	return int(size)
}

func (l logChunks) synced(chunk []byte, _ int64) int64 {
	if chunk[kindAt] < fullSyncKind {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(chunk[chunkHeader:]))
}

// ended looks for the end that a log is given when it is closed: a header without a sum.
func (l logChunks) ended(block []byte, at int) bool {
	end := block[at:]
	return l.later || len(end) >= chunkHeader && isZero(end[:kindAt]) && end[kindAt] == fullKind &&
		binary.LittleEndian.Uint32(end[numberAt:]) == l.number+1
}

func (l logChunks) torn(block []byte, at, end int) bool {
	return zeroSector(block, at, end) || olderChunk(block[:end], int64(at+1), l.number)
}

// sector is the size, in bytes, of the unit that a disk writes whole or not at
// all.
const sector = 512

// zeroSector reports whether a chunk is zeros from the border of a sector to the next one, or to its end.
func zeroSector(block []byte, at, end int) bool {
	for from := (at/sector + 1) * sector; from < end; from += sector {
		if isZero(block[from:min(from+sector, end)]) {
			return true
		}
	}
	return false
}

func isZero(text []byte) bool {
	for _, b := range text {
		if b != 0 {
			return false
		}
	}
	return true
}

// suspect is a bit that is another one in a chunk, unless the chunk was not written whole.
type suspect struct {
	flip
	torn bool
}

// mendChunks returns the bits that are other ones in the chunks of a file.
func mendChunks(f io.ReaderAt, c chunks) (flips []flip, err error) {
	var found []suspect
	block := make([]byte, logBlock)
	synced, ended := int64(0), false
	for begin, more := int64(0), true; more; begin += logBlock {
		n, err := f.ReadAt(block, begin)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		at := 0
		for at < n {
			if size := soundChunk(c, block[:n], at); size > 0 {
				synced = max(synced, c.synced(block[at:at+size], begin+int64(at)))
				at += size
				continue
			}
			fl, end, ok := mendChunk(c, block[:n], at)
			if !ok { // here it ends, or more is damaged than a bit
				break
			}
			if fl.mask != 0 {
				found = append(found, suspect{flip{begin + fl.at, fl.mask}, c.torn(block[:n], at, end)})
				block[fl.at] ^= fl.mask
			}
			at = end
		}
		more, ended = at == logBlock, c.ended(block[:n], at)
	}
	for _, s := range found {
		if s.at < synced || ended && !s.torn {
			flips = append(flips, s.flip)
		}
	}
	return flips, nil
}

// soundChunk returns the size of the sound chunk that begins at a place, 0 if none does.
func soundChunk(c chunks, block []byte, at int) int {
	size := c.claimed(block, at)
	if size == 0 || !sound(block[at:at+size]) {
		return 0
	}
	return size
}

// mendChunk looks for the bit of a chunk that makes it sound, without a mask if it is none. end is where the next one
// begins.
func mendChunk(c chunks, block []byte, at int) (fl flip, end int, ok bool) {
	space := block[at:]
	if len(block) == logBlock && len(space) < syncHeader {
		if fl, ok = padding(space); ok { // no chunk has fitted in there
			fl.at += int64(at)
			return fl, logBlock, true
		}
	}
	if isZero(space[:min(len(space), plainHeader)]) {
		return fl, 0, false
	}
	for i := range min(len(space), syncHeader) { // its sum, its size and what it is
		for bit := range 8 {
			space[i] ^= 1 << bit
			size := soundChunk(c, block, at)
			if space[i] ^= 1 << bit; size > 0 {
				return flip{int64(at + i), 1 << bit}, at + size, true
			}
		}
	}
	size := c.claimed(block, at)
	if size == 0 {
		return fl, 0, false
	}
	i, mask, ok := bitflip.Find(space[kindAt:size], bitflip.Unmask(binary.LittleEndian.Uint32(space)))
	return flip{int64(at + kindAt + i), mask}, at + size, ok && i >= syncHeader-kindAt
}

// padding returns the bit of the zeros at the end of a block that is another one.
func padding(zeros []byte) (fl flip, ok bool) {
	for i, b := range zeros {
		switch {
		case b == 0:
		case fl.mask != 0 || b&(b-1) != 0:
			return flip{}, false
		default:
			fl = flip{int64(i), b}
		}
	}
	return fl, true
}
