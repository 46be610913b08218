package search

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/storagetest"
)

// putAll writes documents of one word each, d0 to d<n-1>, at once.
func (n *world) putAll(docs int) {
	n.t.Helper()
	req := shard.DecideRequest{Copy: copyName}
	for i := range docs {
		body := fmt.Appendf(nil, `{"Text":"w%d","Numbers":[%d]}`, i%10, i)
		req.Edits = append(req.Edits, shard.Edit{ID: fmt.Sprint("d", i), Body: body, Path: doc.Path{Start: 1, IDs: []string{fmt.Sprintf("%032x", 1)}}})
	}
	results, err := n.shards.Decide(n.t.Context(), req)
	must(n.t, err)
	for _, r := range results {
		must(n.t, r.Err)
	}
}

func (n *world) create() {
	n.t.Helper()
	must(n.t, n.shards.Copies.Create(n.t.Context(), copyName, shard.CreateOptions{}))
}

// expectTotal fails unless a query finds so many documents.
func (n *world) expectTotal(q string, want uint64) {
	n.t.Helper()
	if _, total := n.ids(n.request(q)); total != want {
		n.t.Errorf("%s finds %d documents in place of %d", q, total, want)
	}
}

// TestManyDocuments: an index that is filled by several goroutines holds each document once,
// and a purged one no more.
func TestManyDocuments(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.putAll(2000)
	n.expectTotal("*:*", 2000)
	n.expectTotal("t:w3", 200)
	n.putAll(100) // again, without a change
	n.expectTotal("*:*", 2000)
	n.edits = 1
	n.put("d3", nil)
	purged, err := n.shards.Purge(t.Context(), copyName, []shard.PurgeItem{{ID: "d13", Revs: []doc.Rev{{Pos: 1, ID: fmt.Sprintf("%032x", 1)}}}})
	must(t, err)
	if len(purged) != 1 || len(purged[0].Purged) != 1 {
		t.Fatalf("purged %v", purged)
	}
	n.expectTotal("t:w3", 198)
	n.expectTotal("*:*", 1998)
}

// TestNothingNew: an update in the background that finds nothing to do is one.
func TestNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, vfs.NewMem())
		defer n.stop()
		n.create()
		n.putAll(10)
		n.expectTotal("*:*", 10)
		use, err := n.manager.Acquire(t.Context(), copyName, n.spec())
		must(t, err)
		defer use.Release()
		use.Start()
		synctest.Wait()
		n.expectTotal("*:*", 10)
	})
}

// TestDroppedCopy: the index of a copy goes with it.
func TestDroppedCopy(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.putAll(10)
	n.expectTotal("*:*", 10)
	must(t, n.shards.Copies.Drop(t.Context(), copyName))
	if _, err := n.indexes.Query(t.Context(), n.request("*:*")); !fault.Is(err, fault.NoCopy) {
		t.Errorf("a query of a copy that is gone: %v", err)
	}
	n.create()
	n.putAll(3)
	n.expectTotal("*:*", 3)
}

// TestScores: rarer words, more of them and shorter texts are better.
func TestScores(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	for id, text := range map[string]string{
		"once": "a b c d", "twice": "a a b c", "short": "a", "rare": "x b c d", "both": "a x c d",
	} {
		n.put(id, &content{Text: text})
	}
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"t:a", []string{"short", "twice", "both", "once"}},
		{"t:a t:x", []string{"both", "rare", "short", "twice", "once"}},
		{"t:a^100 t:x", []string{"both", "short", "twice", "once", "rare"}},
		{"+t:a t:x", []string{"both", "short", "twice", "once"}},
		{"t:a -t:b", []string{"short", "both"}},
		{"t:b*", []string{"once", "rare", "twice"}},
		{`t:"b c d"`, []string{"once", "rare"}},
	} {
		if got, _ := n.ids(n.request(c.query)); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v in place of %v", c.query, got, c.want)
		}
	}
}

// TestRefused: sort orders that make no sense.
func TestRefused(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.putAll(3)
	for _, change := range []func(*Request){
		func(r *Request) { r.Sort = []Sort{{By: ByNumber, Field: "t"}} },
		func(r *Request) { r.After = &Position{ID: "x"} },
		func(r *Request) { r.Signature = signatureOf(syntax.Search, []byte("{}")) }, // that of another definition
	} {
		req := n.request("*:*")
		change(&req)
		if _, err := n.indexes.Query(t.Context(), req); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%v, %v: %v", req.Sort, req.After, err)
		}
	}
}

// TestNouveauNumbers: in Nouveau a field that has numbers says that words are numbers.
func TestNouveauNumbers(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.putAll(20)
	for text, want := range map[string]uint64{"n:7": 1, "n:7.0": 1, "t:7": 0, "t:w7": 2, "n:[5 TO 8}": 3, "n>17": 2, "n:[* TO *]": 20, "t:[w8 TO w9]": 4} {
		if _, total := n.ids(n.nouveau(text)); total != want {
			t.Errorf("%s finds %d documents in place of %d", text, total, want)
		}
	}
}

// TestCrash: after a crash an index goes on from what it holds.
func TestCrash(t *testing.T) {
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		fs := storagetest.NewCrashFS()
		n := start(t, fs)
		n.indexes.chunkBytes = 300
		n.create()
		for i := range 5 {
			for j := range 20 {
				n.put(fmt.Sprint("d", rnd.IntN(30)), &content{Text: fmt.Sprintf("r%d w%d", i, j%3)})
			}
			n.expectTotal("*:*", uint64(len(n.docs)))
			if rnd.IntN(2) == 0 {
				s, err := n.engine.Acquire(copyName)
				must(t, err)
				x, err := n.engine.Indexes().Acquire(s, indexName.String())
				must(t, err)
				must(t, x.Flush())
				n.engine.Indexes().Release(x)
				n.engine.Release(s)
			}
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rnd})
		docs := n.docs
		n.stop()
		n = start(t, after)
		n.indexes.chunkBytes = 300
		n.docs = docs
		for _, word := range []string{"r4", "w1"} {
			want, _ := n.model().Find(syntax.Term{Field: "t", Text: word})
			n.expectTotal("t:"+word, uint64(len(want)))
		}
		n.expectTotal("*:*", uint64(len(docs)))
		n.stop()
	}
}

// TestReplacedOften: documents that were replaced are told as many as they are, whichever
// chunks they are in, and do not make the words of the others worthless.
func TestReplacedOften(t *testing.T) {
	for _, chunkBytes := range []uint64{1, postings.ChunkBytes} {
		n := start(t, vfs.NewMem())
		n.indexes.chunkBytes = chunkBytes
		n.create()
		for i := range 5 {
			n.put("a", &content{Text: fmt.Sprint("word ", i)})
			n.put("b", &content{Text: fmt.Sprint("word word word", i)})
			n.expectTotal("t:word", 2)
		}
		a, err := n.indexes.Query(t.Context(), n.request("t:word"))
		must(t, err)
		if a.Hits[1].Order[0].Number <= 0 {
			t.Errorf("chunks of %d bytes: the scores are %v and %v", chunkBytes, a.Hits[0].Order, a.Hits[1].Order)
		}
		info, err := n.indexes.Info(t.Context(), copyName, signature, []byte(definition))
		must(t, err)
		if info.Live != 2 || info.Dead > 8 {
			t.Errorf("chunks of %d bytes: %d documents, %d dead", chunkBytes, info.Live, info.Dead)
		}
		n.stop()
	}
}
