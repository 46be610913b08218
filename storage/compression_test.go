package storage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/compression"
)

// TestCompression writes the same documents with each method, and then with one after the
// other into one store, which is read as ever.
func TestCompression(t *testing.T) {
	var now atomic.Uint32
	o := Options{FS: vfs.NewMem(), Compression: func() compression.Method { return compression.Method(now.Load()) }}
	e, stop := startEngine(t, o)
	bodies := prose(2000)
	fill := func(name string, w *edits, m compression.Method) (size int64) {
		now.Store(uint32(m))
		s, err := e.Acquire(name)
		must(t, err)
		for i := 0; i < len(bodies); i += 100 {
			b := s.NewBatch()
			for k := range 100 {
				w.put(b, edit{id: numbered(i + k), body: bodies[i+k]})
			}
			commit(t, b)
		}
		must(t, s.Compact(t.Context(), CompactOptions{Write: func(_ context.Context, fn func(*Batch) error) error {
			b := s.NewBatch()
			must(t, fn(b))
			commit(t, b)
			return nil
		}}))
		w.load(t, s)
		checkStore(t, s)
		e.Release(s)
		size, err = e.Catalog().FileSize(name)
		must(t, err)
		return size
	}
	sizes := map[compression.Method]int64{}
	for i, m := range []compression.Method{compression.None, compression.Fast, compression.Small} {
		name := fmt.Sprintf("shards/00000000-7fffffff/db%d.1763600000", i)
		must(t, e.Create(name, CreateOptions{CopyID: 1, Small: true}))
		sizes[m] = fill(name, newEdits(), m)
	}
	none, fast, small := sizes[compression.None], sizes[compression.Fast], sizes[compression.Small]
	if fast > none*9/10 || small > fast*9/10 {
		t.Errorf("%d bytes without compression, %d with the fast one, %d with the small one", none, fast, small)
	}
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	w := newEdits()
	for _, m := range []compression.Method{compression.Small, compression.None, compression.Fast} {
		fill(testStore, w, m)
	}
	stop()
	again, _ := startEngine(t, Options{FS: o.FS})
	checkStore(t, acquire(t, again, testStore))
}

// prose returns bodies of 500 bytes and more, of words that come often and numbers that do not.
func prose(n int) [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("frog newt toad pond lake reed water lily heron otter beetle gnat under between quietly slowly green brown")
	out := make([][]byte, n)
	for i := range out {
		text := fmt.Appendf(nil, `{"n":%d,"text":"`, r.Uint64())
		for len(text) < 500 {
			text = fmt.Append(text, words[r.IntN(len(words))], " ")
		}
		out[i] = append(text, `"}`...)
	}
	return out
}
