package storage

import (
	"fmt"
	"testing"

	"divan/storage/doc"
)

// TestBlocksGoWithDocuments: documents whose histories lie in blocks are replaced, erased,
// removed and compacted, and nothing is left of their blocks.
func TestBlocksGoWithDocuments(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 7, Small: true})
	w := newEdits()
	grow := func(id string, n int) {
		b := s.NewBatch()
		for i := range n {
			w.put(b, edit{id: id, body: fmt.Appendf(nil, `{"n":%d}`, i)})
			commit(t, b)
			b = s.NewBatch()
		}
		b.Discard()
	}
	blocksOf := func(id string, want uint64) {
		t.Helper()
		tip, ok, err := s.Reader().Tip(id)
		must(t, err)
		if first, end := tip.Below.Blocks(); !ok || end-first != want {
			t.Fatalf("%s: %v, %+v, want %d blocks", id, ok, tip.Below, want)
		}
		checkStore(t, s)
	}
	for _, id := range []string{"a", "b\x00", "b\x00c", "compacted"} {
		grow(id, 120)
		blocksOf(id, 3)
	}

	// A copy of a as it was, with its history in one part.
	snap, err := s.Snapshot()
	must(t, err)
	old := StoredDoc{ID: "a"}
	must(t, snap.RecordTexts([]string{"a"}, func(_ int, record []byte) error {
		if doc.HasBlocks(record) {
			t.Error("the record of a clone leaves a part of the history behind")
		}
		old.Record = append([]byte{}, record...)
		return nil
	}))
	must(t, snap.Bodies("a", func(rev doc.Rev, text []byte) error {
		old.Bodies = append(old.Bodies, StoredRevision{Rev: rev, Text: append([]byte{}, text...)})
		return nil
	}))
	changes, err := snap.Changes(SeqRange{})
	must(t, err)
	for ok := changes.First(); ok; ok = changes.Next() {
		if string(changes.Change().ID) == "a" {
			old.Change = append([]byte{}, changes.it.Value()...)
		}
	}
	must(t, changes.Close())
	must(t, snap.Close())
	b := s.NewBatch()
	TransferInto(b).Replace([]StoredDoc{old}, false)
	commit(t, b)
	blocksOf("a", 0)
	w.load(t, s)
	rec, _, err := s.Reader().Record("a")
	must(t, err)
	if rec.Tree.Len() != 120 {
		t.Fatalf("%d revisions", rec.Tree.Len())
	}
	grow("a", 1)
	blocksOf("a", 3)

	b = s.NewBatch()
	must(t, trim(b, "compacted"))
	commit(t, b)
	blocksOf("compacted", 3)

	b = s.NewBatch()
	TransferInto(b).Erase([]string{"b\x00"})
	commit(t, b)
	checkStore(t, s)
	blocksOf("b\x00c", 3)

	w.load(t, s)
	rec, _, err = s.Reader().Record("b\x00c")
	must(t, err)
	w.recs["b\x00c"] = &rec
	b = s.NewBatch()
	w.purge(b, "b\x00c")
	commit(t, b)
	checkStore(t, s)

	tip, _, err := s.Reader().Tip("a")
	must(t, err)
	old.Record = tip.AppendBinary(nil)
	b = s.NewBatch()
	TransferInto(b).Replace([]StoredDoc{old}, false)
	if _, err := b.Apply(); err == nil {
		t.Error("a record whose history is elsewhere was taken")
	}
}
