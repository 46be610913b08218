package instance

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// appendRecord appends a record to a log that was durable until then, in chunks of the newest format.
func appendRecord(log []byte, number uint32, content []byte) []byte {
	synced := uint64(len(log))
	for first := true; ; first = false {
		if left := logBlock - len(log)%logBlock; left < syncHeader {
			log = append(log, make([]byte, left)...)
		}
		n := min(len(content), logBlock-len(log)%logBlock-syncHeader)
		part, last := content[:n], n == len(content)
		content = content[n:]
		kind := byte(middleSync)
		switch {
		case first && last:
			kind = fullSyncKind
		case first:
			kind = firstSync
		case last:
			kind = lastKind
		}
		body := binary.LittleEndian.AppendUint32([]byte{kind}, number)
		body = append(binary.LittleEndian.AppendUint64(body, synced), part...)
		sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		log = binary.LittleEndian.AppendUint32(log, (sum>>15|sum<<17)+0xa282ead8)
		log = binary.LittleEndian.AppendUint16(log, uint16(n))
		if log = append(log, body...); last {
			return log
		}
	}
}

// content is bytes, some of them zeros when they may be.
func content(t *rapid.T, most int, zeros bool) []byte {
	out := make([]byte, rapid.IntRange(1, most).Draw(t, "size"))
	least := 1
	if zeros {
		least = rapid.SampledFrom([]int{-1000, 0, 1}).Draw(t, "least")
	}
	for i := range out {
		out[i] = byte(max(0, least+(i*7+len(out))%250))
	}
	return out
}

// TestTorn: a write that ended at some page is told from one that was written whole and
// damaged since, over zeros, over an earlier log, and at the end of the file.
func TestTorn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const number = 9
		var log []byte
		for range rapid.IntRange(0, 3).Draw(t, "records") {
			log = appendRecord(log, number, content(t, 20<<10, true))
		}
		zeros := rapid.Bool().Draw(t, "zeros")
		at := int64(len(log))
		log = appendRecord(log, number, content(t, 100<<10, zeros))
		if left := logBlock - at%logBlock; left < syncHeader { // where reading stops
			at += left
		}
		old := bytes.Repeat([]byte{0}, len(log)+3*page)
		switch rapid.SampledFrom([]string{"zeros", "older", "file"}).Draw(t, "below") {
		case "older":
			var older []byte
			for len(older) < len(old) {
				older = appendRecord(older, number-1, content(t, 900, false))
			}
			old = older
		case "file":
			old = nil
		}
		block := at / logBlock * logBlock
		see := func(text []byte) bool { return torn(text[block:], at-block, number, true) }

		end := rapid.Int64Range((at+kindAt+5)/page+1, int64(len(log)-1)/page+1).Draw(t, "page") * page
		if end < int64(len(log)) {
			text := bytes.Clone(log[:end])
			if int64(len(old)) > end {
				text = append(text, old[end:]...)
			}
			// An earlier log that shows no chunk before the end of the write tells nothing.
			if !see(text) && !zeros && (len(old) == 0 || int64(len(log))-end > 2<<10) {
				t.Fatalf("a write from %d to %d that ended at %d is not seen", at, len(log), end)
			}
		}

		text := bytes.Clone(log)
		if len(old) > len(log) {
			text = append(text, old[len(log):]...)
		}
		damaged := rapid.Int64Range(at, int64(len(log)-1)).Draw(t, "damaged")
		if rapid.Bool().Draw(t, "header") {
			damaged = min(at+rapid.Int64Range(0, numberAt+3).Draw(t, "byte"), int64(len(log)-1))
		}
		text[damaged] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if see(text) {
			t.Fatalf("a write from %d to %d with a damaged byte at %d passes for one that was cut off", at, len(log), damaged)
		}
	})
}
