package storage

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/doc"
)

// TestRecords: many records at once, those that are not there among them.
func TestRecords(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	w := newEdits()
	putDocs(t, s, w, docsOf{300, 100, numbered})
	ids := []string{numbered(0), numbered(1), numbered(2), numbered(5), numbered(150), numbered(299), numbered(300), numbered(1000)}
	seen := 0
	must(t, s.Reader().Records(ids, nil, func(i int, rec *doc.Record) {
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

// TestLastID: ids above all others are known not to exist without a look, those
// that come are found, also after the last ones went and the store was opened
// again.
func TestLastID(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(storeName(1), CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(storeName(1))
	must(t, err)
	w := newEdits()
	check := func() {
		t.Helper()
		for i := range 40 {
			_, want := w.recs[numbered(i)]
			if _, ok, err := s.Reader().Record(numbered(i)); ok != want || err != nil {
				t.Errorf("%s is there: %v, %v, want %v", numbered(i), ok, err, want)
			}
		}
		checkStore(t, s)
	}
	check()
	for _, i := range []int{5, 20, 3, 19, 33} {
		b := s.NewBatch()
		w.put(b, edit{id: numbered(i)})
		commit(t, b)
		check()
	}
	b := s.NewBatch()
	b.Remove(w.recs[numbered(33)])
	commit(t, b)
	delete(w.recs, numbered(33))
	check()
	e.Release(s)
	stop()
	e, _ = startEngine(t, Options{FS: fs})
	s, err = e.Acquire(storeName(1))
	must(t, err)
	defer e.Release(s)
	if last := s.states.applied().last; last != numbered(20) {
		t.Errorf("the last id is %q", last)
	}
	check()
}
