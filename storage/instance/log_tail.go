package instance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/wal"
	"go.uber.org/zap"
)

// Opening reads a log up to the first record that is not whole, and gives up what
// is behind it: a write that a crash cut off, which was never acknowledged. But
// damage in the last block of a log looks the same, and then what is given up may
// have been acknowledged. So it is reported.

// GivenUp is the end of a log that could not be read.
type GivenUp struct {
	Log    string
	Offset int64
	Bytes  int64
	// Torn says that it is a write that never ended, not damage.
	Torn bool
}

// String says what was given up.
func (g *GivenUp) String() string {
	what := "a write that was cut off, or damage"
	if g.Torn {
		what = "a write that was cut off, which nobody was told of"
	}
	return fmt.Sprintf("%d bytes at offset %d of the log %s cannot be read and were given up: %s", g.Bytes, g.Offset, g.Log, what)
}

// replayed begins the message by which Pebble says where it stopped reading a
// log. Its third argument is the place.
const replayed = "[JOB %d] WAL %s stopped reading"

// logRead looks at what is behind the place where reading a log has stopped.
func (s *files) logRead(format string, args []any) {
	if !strings.HasPrefix(format, replayed) || len(args) < 3 {
		return
	}
	at, ok := args[2].(wal.Offset)
	if !ok {
		return
	}
	name := s.shared.FS.PathBase(at.PhysicalFile)
	number, err := strconv.ParseUint(strings.TrimSuffix(name, ".log"), 10, 64)
	if err != nil {
		return
	}
	text, whole, err := s.readFrom(at.PhysicalFile, at.Physical/logBlock*logBlock, 2*logBlock) // Pebble looks further by itself
	if err != nil {
		s.log.Warn("the end of a log could not be looked at", zap.String("log", name), zap.Error(err))
		return
	}
	if n := unread(text, at.Physical%logBlock, uint32(number)); n > 0 {
		g := &GivenUp{Log: name, Offset: at.Physical, Bytes: n}
		if !whole {
			text, whole, err = s.readFrom(at.PhysicalFile, at.Physical/logBlock*logBlock, recordWindow)
		}
		g.Torn = err == nil && torn(text, at.Physical%logBlock, uint32(number), whole)
		s.givenUp.Store(g)
		told := s.log.Warn
		if g.Torn {
			told = s.log.Info
		}
		told("the end of a log was given up", zap.String("log", g.Log), zap.Int64("offset", g.Offset), zap.Int64("bytes", g.Bytes), zap.Bool("cut_off", g.Torn))
	}
}

// recordWindow is how much of a log is looked at: more than a record has.
const recordWindow = 16 << 20

// readFrom reads so much of a log at most, from an offset on; whole: to its end.
func (s *files) readFrom(path string, offset, most int64) (text []byte, whole bool, err error) {
	f, err := s.shared.FS.Open(path)
	if err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	left := max(info.Size()-offset, 0)
	text = make([]byte, min(left, most))
	n, err := f.ReadAt(text, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return text[:n], left <= most, errors.Join(err, f.Close())
}

// A log is blocks of chunks: CRC u32, size u16, kind u8, number of the log u32,
// and 8 bytes more in the newest format, before what it holds. What an earlier
// log of the file has left behind has a smaller number; the end that a log is
// given when it is closed has the next one.
const (
	logBlock     = 32 << 10
	kindAt       = 6
	numberAt     = 7
	chunkHeader  = 11
	syncHeader   = 19
	fullKind     = 5
	firstKind    = 6
	middleKind   = 7
	fullSyncKind = 9 // the first kind of the newest format
	firstSync    = 10
	middleSync   = 11
	lastKind     = 12
)

// unread returns how many bytes of a log with that number are behind a place of
// the first block of text, as far as can be told from what an earlier log left
// there: up to the end of its last chunk.
func unread(text []byte, at int64, number uint32) int64 {
	first := at
	if logBlock-at%logBlock < chunkHeader { // nothing begins there
		first += logBlock - at%logBlock
	}
	end := lastSound(text, first+1, number)
	if size, own := chunk(text, first, number); own {
		whole := first+size <= int64(len(text)) && sound(text[first:first+size])
		if kind := text[first+kindAt]; whole && (kind == fullSyncKind || kind == fullKind) {
			return 0 // a table that was ingested: the log has nothing behind it
		}
		end = max(end, first+min(size, logBlock-first%logBlock))
	}
	return max(min(end, int64(len(text)))-at, 0)
}

// lastSound returns where the last chunk with a right checksum ends that begins
// at a place or behind it, 0 when there is none.
func lastSound(text []byte, from int64, number uint32) (end int64) {
	mark := binary.LittleEndian.AppendUint32(nil, number)
	for from < int64(len(text)) {
		next := bytes.Index(text[from:], mark)
		if next < 0 {
			return end
		}
		begin := from + int64(next) - numberAt
		if begin >= 0 {
			if size, own := chunk(text, begin, number); own && begin+size <= int64(len(text)) && sound(text[begin:begin+size]) {
				end = begin + size
			}
		}
		from += int64(next) + 1
	}
	return end
}

// chunk returns the size of the chunk that begins at a place, with its header, and
// whether it says that it is of the log with that number.
func chunk(text []byte, at int64, number uint32) (size int64, own bool) {
	if at+chunkHeader > int64(len(text)) || binary.LittleEndian.Uint32(text[at+numberAt:]) != number {
		return 0, false
	}
	size = chunkHeader
	if text[at+kindAt] >= fullSyncKind {
		size = syncHeader
	}
	return size + int64(binary.LittleEndian.Uint16(text[at+4:])), true
}

// sound reports whether the checksum of a chunk is right.
func sound(chunk []byte) bool {
	sum := crc32.Checksum(chunk[kindAt:], crc32.MakeTable(crc32.Castagnoli))
	return chunk[kindAt] <= lastKind && binary.LittleEndian.Uint32(chunk) == (sum>>15|sum<<17)+0xa282ead8
}
