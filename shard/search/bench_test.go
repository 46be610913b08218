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
	"divan/shard/search/postings"
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
		req := shard.DecideRequest{Copy: copyName}
		for i := from; i < from+500; i++ {
			var text strings.Builder
			for text.Len() < 1000 {
				fmt.Fprintf(&text, "w%d ", zipf.Uint64())
			}
			body, _ := json.Marshal(content{Text: text.String(), Tags: []string{fmt.Sprint("tag", i%20)}, Numbers: []float64{float64(i)}})
			req.Edits = append(req.Edits, shard.Edit{ID: fmt.Sprintf("doc%06d", i), Body: body, Path: doc.Path{Start: 1, IDs: []string{fmt.Sprintf("%032x", 1)}}})
		}
		if _, err := n.shards.Decide(b.Context(), req); err != nil {
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

// BenchmarkTerms asks for words in few and in many of 200,000 documents of 150 to 180 words, of
// which many have the same score.
func BenchmarkTerms(b *testing.B) {
	n := start(b, vfs.NewMem())
	defer n.stop()
	n.create()
	const docs, atOnce = 200_000, 250
	for _, text := range []string{definition, nouveauDefinition} {
		rnd := rand.New(rand.NewPCG(1, 2))
		w := n.write(text, postings.ChunkBytes)
		for from := 0; from < docs; from += atOnce {
			var v postings.Inverter
			for i := range atOnce {
				v.Begin(fmt.Sprintf("%016x", rnd.Uint64()))
				words := []string{"all"}
				if (from+i)%40 == 0 {
					words = append(words, "few")
				}
				if rnd.IntN(2) == 0 {
					words = append(words, "half")
				}
				for range max(0, rnd.IntN(8)-3) {
					words = append(words, "often")
				}
				w.document(&v, words, 150+rnd.IntN(31))
			}
			w.apply(&v, from%5000 == 0)
		}
		w.apply(&postings.Inverter{}, true)
		must(b, w.x.Compact(b.Context()))
		for _, q := range []string{"t:few", "t:half", "t:often", "t:all", "t:half t:often", "t:half AND t:often"} {
			b.Run(fmt.Sprint(w.def.Dialect, " ", q), func(b *testing.B) {
				for b.Loop() {
					w.answer(&Request{Query: q, Limit: 25})
				}
			})
		}
		w.close()
	}
}
