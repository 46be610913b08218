package storage

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkFirstDocuments is what the first documents of a new store cost, one by one, in a small
// store and in one with an instance of its own.
func BenchmarkFirstDocuments(b *testing.B) {
	for _, docs := range []int{10, 60, 200} {
		for _, small := range []bool{false, true} {
			b.Run(fmt.Sprintf("docs=%d/small=%t", docs, small), func(b *testing.B) {
				e, _ := startEngine(b, Options{FS: vfs.NewMem()})
				b.ReportAllocs()
				for i := range b.N {
					must(b, e.Create(storeName(i), CreateOptions{Small: small}))
					s, err := e.Acquire(storeName(i))
					must(b, err)
					putDocs(b, s, newEdits(), docsOf{docs, 1, numbered})
					e.Release(s)
				}
			})
		}
	}
}

// BenchmarkSmallUpdate is what a write costs in a store of some size.
func BenchmarkSmallUpdate(b *testing.B) {
	for _, docs := range []int{1, 10, 25, 70} {
		for _, small := range []bool{false, true} {
			b.Run(fmt.Sprintf("docs=%d/small=%t", docs, small), func(b *testing.B) {
				e, _ := startEngine(b, Options{FS: vfs.NewMem()})
				must(b, e.Create(testStore, CreateOptions{Small: small}))
				s := acquire(b, e, testStore)
				putDocs(b, s, newEdits(), docsOf{docs, 1, numbered})
				b.ReportAllocs()
				for i := range b.N {
					w := s.NewBatch()
					w.PutLocal("_local/x", fmt.Appendf(nil, `{"n":%d,"x":"%0100d"}`, i, i))
					commit(b, w)
				}
			})
		}
	}
}
