package storage

import (
	"bytes"
	"testing"

	"divan/storage/keyspace"
)

// TestTablesOfKeyspaces: a store that is written to little flushes into one
// table; later ones hold one keyspace each, so that ascending ones never are
// written again.
func TestTablesOfKeyspaces(t *testing.T) {
	s := newStore(t, CreateOptions{})
	w := newEdits()
	flush := func(n int) {
		putDocs(t, s, w, docsOf{n: 10, perBatch: 10, id: func(i int) string { return numbered(n*10 + i) }})
		must(t, s.inst.DB().Flush())
	}
	flush(0)
	if n := s.inst.DB().Metrics().Total().TablesCount; n != 1 {
		t.Fatalf("%d tables after a first small flush, want 1", n)
	}
	for n := 1; !s.inst.SplitsTables(); n++ {
		flush(n)
	}
	must(t, s.inst.DB().Compact(t.Context(), []byte{0}, []byte{0xff}, false))
	flush(100)
	levels, err := s.inst.DB().SSTables()
	must(t, err)
	tables := 0
	for _, level := range levels {
		for _, table := range level {
			tables++
			end := keyspace.TableEnd(table.Smallest.UserKey)
			if end != nil && bytes.Compare(table.Largest.UserKey, end) >= 0 {
				t.Errorf("a table reaches from %q to %q", table.Smallest.UserKey, table.Largest.UserKey)
			}
		}
	}
	if tables < 5 {
		t.Errorf("%d tables, want at least one for each of five groups of keyspaces", tables)
	}
	checkStore(t, s)
}
