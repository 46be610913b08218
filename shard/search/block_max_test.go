package search

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"divan/shard/search/postings"
)

// TestBounds: what is found by the bounds of runs is what a look at each document finds, and
// pages are what all hits are, in both dialects: with scores that tie, dead documents, several
// chunks, and lengths that are not known.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := start(t, vfs.NewMem())
		defer n.stop()
		n.create()
		chunkBytes := rapid.SampledFrom([]uint64{2000, 20_000, postings.ChunkBytes}).Draw(r, "chunk")
		w := n.write(rapid.SampledFrom([]string{definition, nouveauDefinition}).Draw(r, "definition"), chunkBytes)
		defer w.close()
		lengths := rapid.SampledFrom([][]int{{10}, {10, 11, 12, 50}, {5, 40, 300, 3000}}).Draw(r, "lengths")
		for range rapid.IntRange(1, 6).Draw(r, "batches") {
			var v postings.Inverter
			for range rapid.IntRange(1, 400).Draw(r, "documents") {
				bits := rapid.Uint32().Draw(r, "document")
				id := fmt.Sprint("d", bits%1000)
				if bits>>10%16 == 0 {
					v.Delete(id)
					continue
				}
				v.Begin(id)
				words := slices.Repeat([]string{"word"}, int(bits>>14%4)*int(1+bits>>16%2))
				if bits>>18%4 == 0 {
					words = append(words, "rare")
				}
				w.document(&v, append(words, "all"), lengths[int(bits>>20)%len(lengths)])
			}
			w.apply(&v, true)
			if rapid.Bool().Draw(r, "empty") {
				must(t, w.w.Empty(t.Context()))
			}
		}
		if rapid.Bool().Draw(r, "compact") {
			must(t, w.x.Compact(t.Context()))
		}
		for _, q := range []string{"t:word", "t:rare", "t:all", "t:word^0", "t:word^1000000", "t:none"} {
			checkBounds(r, w, Request{Query: q, IncludeFields: []string{}})
		}
	})
}

// checkBounds compares all hits, and pages of them, to those of a query that counts something
// as well, which looks at each document.
func checkBounds(r *rapid.T, w *written, req Request) {
	w.ties = rapid.SampledFrom([]int{1, 3, 100, tiesAtOnce}).Draw(r, "ties")
	if rapid.Bool().Draw(r, "by id as well") {
		req.Sort = []Sort{{By: ByScore, Descending: true}, {By: ByID, Descending: true}}
	}
	each := req
	each.Limit = 10_000
	each.Counts = []string{"none"}
	want := w.answer(&each)
	if !slices.IsSortedFunc(want.Hits, func(a, b Hit) int { return Compare(req.Sort, &a.Position, &b.Position) }) || uint64(len(want.Hits)) != want.Total {
		r.Fatalf("%s finds %d in the order of %v", req.Query, want.Total, want.Hits)
	}
	page := rapid.SampledFrom([]int{1, 7, 50, 10_000}).Draw(r, "limit")
	for from := 0; ; from += page {
		if page == 1 && from == 30 {
			from = max(from, len(want.Hits)-5)
			if from > 0 && from < len(want.Hits) {
				req.After = &want.Hits[from-1].Position
			}
		}
		req.Limit = page
		got := w.answer(&req)
		hits := want.Hits[min(from, len(want.Hits)):min(from+page, len(want.Hits))]
		if got.Total != want.Total || len(got.Hits) != len(hits) || len(hits) > 0 && !reflect.DeepEqual(got.Hits, hits) {
			r.Fatalf("%s from %d on finds %d, %v in place of %d, %v", req.Query, from, got.Total, got.Hits, want.Total, hits)
		}
		if len(hits) == 0 {
			break
		}
		req.After = &hits[len(hits)-1].Position
	}
	req.Limit, req.After = 0, nil
	if got := w.answer(&req); got.Total != want.Total || len(got.Hits) > 0 {
		r.Fatalf("%s finds %d, and %d without hits", req.Query, want.Total, got.Total)
	}
}

// TestBoundsSkip: runs that cannot have a hit are not decoded: their numbers are not looked at,
// which are damaged.
func TestBoundsSkip(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	w := n.write(definition, postings.ChunkBytes)
	defer w.close()
	const docs = 1280
	var v postings.Inverter
	for i := range docs {
		v.Begin(fmt.Sprint(i))
		w.document(&v, slices.Repeat([]string{"word"}, 1+i/(docs-1)), 10)
	}
	w.apply(&v, true)
	key, list := w.list("word")
	// Of the first run: a document of another frequency, so that it is no list any more.
	at := strings.Index(list, "\x01\x03\x03\x03")
	if at < 0 {
		t.Fatalf("a list of %q", list)
	}
	w.b.Set([]byte(key), []byte(list[:at+1]+"\x05"+list[at+2:]))
	must(t, w.b.Commit(t.Context()))
	req := Request{Query: "t:word", Limit: 1}
	if a := w.answer(&req); a.Total != docs || a.Hits[0].ID != fmt.Sprint(docs-1) {
		t.Errorf("%d, %v", a.Total, a.Hits)
	}
	if _, err := w.try(&Request{Query: "t:word", Limit: docs}); err == nil {
		t.Error("a list that is damaged was read")
	}
}
