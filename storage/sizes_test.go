package storage

import (
	"fmt"
	"testing"

	"divan/storage/keyspace"
)

// TestFileSizeOfLog: what only the log holds counts, and a compaction that drops
// content makes the store smaller.
func TestFileSizeOfLog(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	size := func() int64 {
		t.Helper()
		n, err := s.FileSize()
		must(t, err)
		return n
	}
	w := newEdits()
	putDocs(t, s, w, docsOf{n: 300, perBatch: 50, id: numbered})
	small := size()
	if small < 300*40 {
		t.Errorf("%d bytes with 300 documents in the log", small)
	}
	data := noise(200<<10, 1)
	upload(t, s, "a", keyspace.ContentKey{1}, data)
	b := s.NewBatch()
	w.put(b, edit{id: "a", atts: uploadOf(keyspace.ContentKey{1}, data)})
	commit(t, b)
	large := size()
	if large < small+int64(len(data)) {
		t.Errorf("%d bytes with %d of content, %d without", large, len(data), small)
	}
	b = s.NewBatch()
	w.put(b, edit{id: "a"})
	commit(t, b)
	if deleted := size(); deleted < large {
		t.Errorf("%d bytes when the content is not referred to any more, %d before", deleted, large)
	}
	compactStore(t, s)
	if compacted := size(); compacted > large-int64(len(data)) {
		t.Errorf("%d bytes when it is compacted, %d before", compacted, large)
	}
	if again := size(); again == 0 {
		t.Error("nothing is left")
	}
}

// TestSizesOfIndexInMemory: what no table holds yet counts, until it is flushed.
func TestSizesOfIndexInMemory(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	x := openIndex(t, s, "abc")
	sizes := func() (file, active int64) {
		t.Helper()
		file, active, err := x.Sizes()
		must(t, err)
		return file, active
	}
	empty, none := sizes()
	if none != 0 {
		t.Errorf("%d bytes in use of nothing", none)
	}
	for i := range 500 {
		setKeys(t, x, fmt.Sprintf("a key that is not short, number %d", i%100))
	}
	file, active := sizes()
	if active < 500*30 || file < empty+active {
		t.Errorf("%d bytes, %d in use, %d before", file, active, empty)
	}
	must(t, x.Compact(t.Context()))
	if after, used := sizes(); after >= file || used >= active || used == 0 || after < used {
		t.Errorf("%d bytes, %d in use behind a compaction, %d and %d before it", after, used, file, active)
	}
	setKeys(t, x, "one more")
	if _, used := sizes(); used < int64(len("one more")) {
		t.Errorf("%d bytes in use", used)
	}
}
