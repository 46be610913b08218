package search

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/storage/doc"
)

// BenchmarkQueries builds an index of documents of 1 KB, and asks it.
func BenchmarkQueries(b *testing.B) {
	const docs = 50_000
	n := start(b, vfs.NewMem())
	defer n.stop()
	must(b, n.shards.Copies.Create(b.Context(), copyName, shard.CreateOptions{}))
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 5, 50_000)
	for from := 0; from < docs; from += 500 {
		req := shard.UpdateRequest{Copy: copyName, Trusted: true}
		for i := from; i < from+500; i++ {
			var text strings.Builder
			for text.Len() < 1000 {
				fmt.Fprintf(&text, "w%d ", zipf.Uint64())
			}
			body, _ := json.Marshal(content{Text: text.String(), Tags: []string{fmt.Sprint("tag", i%20)}, Numbers: []float64{float64(i)}})
			req.Edits = append(req.Edits, shard.Edit{ID: fmt.Sprintf("doc%06d", i), Body: body, Path: doc.Path{Start: 1, IDs: []string{fmt.Sprintf("%032x", 1)}}})
		}
		if _, err := n.shards.Update(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	if _, err := n.indexes.Query(b.Context(), n.request("t:w5")); err != nil {
		b.Fatal(err)
	}
	b.Logf("built in %v", time.Since(began))
	for _, q := range []string{"t:w20000", "t:w300", "t:w3", "t:w300 AND t:w301", `t:"w3 w5"`, `t:"w300 w20"`, "t:w10*", "t:w300~1", "t:/w1[0-9]{3}/", "n:[100 TO 30000]", "*:*", "facet *:*", "sort t:w3", "t:w3 t:w5 t:w30"} {
		req := n.request(q)
		req.Limit = 25
		if rest, ok := strings.CutPrefix(q, "facet "); ok {
			req.Query, req.Counts = rest, []string{"tag"}
		}
		if rest, ok := strings.CutPrefix(q, "sort "); ok {
			req.Query, req.Sort = rest, []Sort{{By: ByNumber, Field: "n"}}
		}
		b.Run(q, func(b *testing.B) {
			for b.Loop() {
				if _, err := n.indexes.Query(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
