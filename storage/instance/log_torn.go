package instance

import (
	"bytes"
	"encoding/binary"
)

const (
	page       = 4 << 10 // the kernel takes a write in such pieces
	leastZeros = 512     // bytes: fewer may be what was written
	candidates = 4 << 10 // chunks that are looked at; a document may have made them
)

// torn reports whether a log ends in a write that never ended: the process was killed,
// or the machine lost power, while it was under way. Such a write was never
// acknowledged. at is where reading has stopped, in the first block of text; the log
// has that number. It is false where an end that was written whole may have been
// damaged since, and where text ends too early to tell. whole: text reaches to the end
// of the file.
func torn(text []byte, at int64, number uint32, whole bool) bool {
	for begun := false; ; begun = true { // chunks of one record
		if logBlock-at%logBlock < chunkHeader { // nothing begins there
			at += logBlock - at%logBlock
		}
		size, own := chunk(text, at, number)
		end := at + size
		switch {
		case !whole && max(end, at+chunkHeader) > int64(len(text)):
			return false
		case !own:
			return begun && !anySound(text, at+1, number) && endsEarly(text, at, at+page, number)
		case at%logBlock+size > logBlock: // no chunk is that long
			return false
		case end > int64(len(text)) || !sound(text[at:end]):
			return !anySound(text, at+1, number) && !otherSize(text, at) && endsEarly(text, at+1, end, number)
		}
		switch text[at+kindAt] {
		case firstKind, middleKind, firstSync, middleSync: // more must come
		default:
			return false
		}
		at = end
	}
}

// endsEarly reports whether writing ended before a place and at the border of a page:
// the file ends, or the old content follows, the zeros of a new file or the rest of
// an earlier log in the file.
func endsEarly(text []byte, from, to int64, number uint32) bool {
	if to > int64(len(text)) {
		return len(text)%page == 0
	}
	return zerosFromPage(text[:to], from) || olderChunk(text[:to], from, number)
}

// zerosFromPage reports whether text ends in zeros that begin with a page behind from.
func zerosFromPage(text []byte, from int64) bool {
	begin := int64(len(bytes.TrimRight(text, "\x00")))
	return begin >= from && begin%page == 0 && int64(len(text))-begin >= leastZeros
}

// anySound reports whether a sound chunk of the log begins at a place or behind it, or
// may do so.
func anySound(text []byte, from int64, number uint32) bool {
	mark := binary.LittleEndian.AppendUint32(nil, number)
	from = min(from, int64(len(text)))
	for range candidates {
		next := bytes.Index(text[from:], mark)
		if next < 0 {
			return false
		}
		if begin := from + int64(next) - numberAt; begin >= from-numberAt && begin >= 0 && whole(text, begin, number) {
			return true
		}
		from += int64(next) + 1
	}
	return true
}

// whole reports whether there is a sound chunk of a log at a place.
func whole(text []byte, at int64, number uint32) bool {
	size, own := chunk(text, at, number)
	return own && at+size <= int64(len(text)) && sound(text[at:at+size])
}

// otherSize reports whether the chunk at a place would be sound with another size: then
// a bit of the size was damaged.
func otherSize(text []byte, at int64) bool {
	header := int64(chunkHeader)
	if text[at+kindAt] >= fullSyncKind {
		header = syncHeader
	}
	size := binary.LittleEndian.Uint16(text[at+4:])
	for bit := range 16 {
		end := at + header + int64(size^1<<bit)
		if end <= int64(len(text)) && sound(text[at:end]) {
			return true
		}
	}
	return false
}

// olderChunk reports whether a sound chunk of a log with a smaller number begins in
// text, at a place or behind it.
func olderChunk(text []byte, from int64, number uint32) bool {
	looked := 0
	for at := from; at+chunkHeader <= int64(len(text)) && looked < candidates; at++ {
		older := binary.LittleEndian.Uint32(text[at+numberAt:])
		if older == 0 || older >= number {
			continue
		}
		if looked++; whole(text, at, older) {
			return true
		}
	}
	return false
}
