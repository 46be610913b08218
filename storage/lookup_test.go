package storage

import "testing"

// TestLookup: many records from one moment, in any order.
func TestLookup(t *testing.T) {
	s := newStore(t, CreateOptions{})
	w := newEdits()
	putDocs(t, s, w, docsOf{300, 100, numbered})
	l, err := s.Lookup()
	must(t, err)
	putDocs(t, s, w, docsOf{10, 10, func(i int) string { return numbered(1000 + i) }})
	for _, i := range []int{5, 299, 0, 1, 2, 300, 1000, 150, 150} {
		rec, ok, err := l.Record(numbered(i))
		if err != nil || ok != (i < 300) || ok && rec.Winner != w.recs[numbered(i)].Winner {
			t.Errorf("Record(%d) = %v, %v", i, ok, err)
		}
	}
	must(t, l.Close())
}
