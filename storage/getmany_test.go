package storage

import (
	"testing"

	"divan/storage/doc"
)

// TestRecords: many records at once, those that are not there among them.
func TestRecords(t *testing.T) {
	s := newStore(t, CreateOptions{})
	w := newEdits()
	putDocs(t, s, w, docsOf{300, 100, numbered})
	ids := []string{numbered(0), numbered(1), numbered(2), numbered(5), numbered(150), numbered(299), numbered(300), numbered(1000)}
	seen := 0
	must(t, s.Records(ids, func(i int, rec *doc.Record) {
		if i != seen {
			t.Errorf("record %d came as number %d", i, seen)
		}
		seen++
		want, there := w.recs[ids[i]]
		if (rec != nil) != there || there && rec.Winner != want.Winner {
			t.Errorf("record of %s is %v, there should be one: %v", ids[i], rec, there)
		}
	}))
	if seen != len(ids) {
		t.Errorf("%d of %d records came", seen, len(ids))
	}
}
