package instance

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
)

// TestDamagedRecord: a changed byte is damage where a record follows; a manifest that was
// cut off, or whose last record is not whole, is what a crash leaves.
func TestDamagedRecord(t *testing.T) {
	var buf bytes.Buffer
	w, last := record.NewWriter(&buf), 0
	for _, size := range []int{30, 200, logBlock - 300, 2*logBlock + 5, 0, 90} { // over the ends of blocks, too
		last = buf.Len()
		if _, err := w.WriteRecord(bytes.Repeat([]byte{byte(size), 1}, size/2)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	whole := buf.Bytes()
	if at, damaged := damagedRecord(whole); damaged {
		t.Errorf("damaged at %d", at)
	}
	for at := 0; at < len(whole); at += 1 + at/100 {
		changed := bytes.Clone(whole)
		changed[at] ^= 0x10
		if begin, damaged := damagedRecord(changed); damaged != (at < last) || begin > at {
			t.Errorf("byte %d of %d, the last record begins at %d: damaged %v at %d", at, len(whole), last, damaged, begin)
		}
		for name, cut := range map[string][]byte{"cut off": whole[:at], "zeros": append(bytes.Clone(whole[:at]), make([]byte, len(whole)-at)...)} {
			if begin, damaged := damagedRecord(cut); damaged {
				t.Errorf("%s at %d: damaged at %d", name, at, begin)
			}
		}
	}
}
