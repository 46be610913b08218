package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"divan/shard"
)

// TestFirstChangeJudgesLittle: the first row of a feed with a filter costs what the first batches
// of its shards cost, also while the client is to hear of it: nothing is judged ahead of time.
func TestFirstChangeJudgesLittle(t *testing.T) {
	const docs, q = 10_000, 8
	var judged atomic.Int64
	w := start(t, setup{compile: func([]byte) (shard.BatchMatcher, error) {
		return func(_ context.Context, docs [][]byte) ([]bool, error) {
			judged.Add(int64(len(docs)))
			out := make([]bool, len(docs))
			for i := range out {
				out[i] = true
			}
			return out, nil
		}, nil
	}})
	d := w.create("db", CreateOptions{Q: q})
	ids := make([]string, docs)
	for i := range ids {
		ids[i] = fmt.Sprintf("doc%05d", i)
	}
	bulk(t, d, ids...)
	for _, descending := range []bool{false, true} {
		first := func(beat func() time.Duration) int64 {
			t.Helper()
			judged.Store(0)
			f, err := d.Changes(t.Context(), ChangesQuery{
				Limit: 1, Descending: descending, Filter: shard.Filter{Kind: shard.FilterSelector, Selector: []byte(`{}`)}, Beat: beat,
			})
			if err != nil {
				t.Fatal(err)
			}
			rows := drain(t, f)
			f.Close() // behind which nothing is judged
			if len(rows) != 1 {
				t.Fatalf("%d rows", len(rows))
			}
			return judged.Load()
		}
		silent, told := first(nil), first(func() time.Duration { return time.Second })
		if silent != told || silent > mostJudgedFirst {
			t.Errorf("descending %v: %d of %d documents are judged, with beats %d", descending, silent, docs, told)
		}
	}
}

// mostJudgedFirst is how many documents a filter judged before there were beats.
const mostJudgedFirst = 64
