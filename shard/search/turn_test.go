package search

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard/fairqueue"
)

// waiting returns when so many wait for a turn.
func waiting(q *fairqueue.Queue, n int) {
	for q.Stats().Waiting != n {
		runtime.Gosched()
	}
}

// held takes all turns of a queue for other databases; give gives one back.
func held(t *testing.T, q *fairqueue.Queue, n int) (give func()) {
	t.Helper()
	turns := make([]fairqueue.Turn, n)
	for i := range turns {
		must(t, q.Acquire(t.Context(), &turns[i], fairqueue.Flow{Database: fmt.Sprint("other", i)}, time.Now(), 0))
	}
	return func() {
		turns[0].Release(time.Now())
		turns = turns[1:]
	}
}

// TestTurns: a query that looks at much works in turns with others, one that looks at little
// does not wait for them, and neither waits longer than its context.
func TestTurns(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	for i := range 3 {
		var words []string
		for k := range 2 * checkEvery / 3 {
			words = append(words, fmt.Sprintf("w%dx%d", i, k))
		}
		n.put(fmt.Sprint("d", i), &content{Text: strings.Join(words, " ")})
	}
	n.expectTotal("t:w*", 3)
	n.indexes.turns = newTurns(1)
	give := held(t, n.indexes.turns.work, 1)
	n.expectTotal("t:w1x1", 1)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := n.indexes.Query(ctx, n.request("t:w*"))
		failed <- err
	}()
	waiting(n.indexes.turns.work, 1)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("a query without a turn ended with %v", err)
	}
	go func() {
		a, err := n.indexes.Query(t.Context(), n.request("t:w*"))
		if err == nil && a.Total != 3 {
			err = fmt.Errorf("%d documents", a.Total)
		}
		failed <- err
	}()
	waiting(n.indexes.turns.work, 1)
	give()
	must(t, <-failed)
	if s := n.indexes.turns.work.Stats(); s.Held != 0 || s.Waiting != 0 {
		t.Errorf("turns are left: %+v", s)
	}
}

// TestLargeQueries: of the queries that take much memory only some run at a time; others do
// not wait for them.
func TestLargeQueries(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	for i := range 5 {
		n.put(fmt.Sprint("d", i), &content{Text: strings.Repeat("word ", smallBytes/4/len("word "))})
	}
	n.expectTotal("t:word", 5)
	give := held(t, n.indexes.turns.large, largeQueries)
	small := n.request("t:word")
	small.IncludeFields = []string{}
	if ids, _ := n.ids(small); len(ids) != 5 {
		t.Errorf("%v without their texts", ids)
	}
	answered := make(chan error)
	go func() {
		a, err := n.indexes.Query(t.Context(), n.request("t:word"))
		if err == nil && (len(a.Hits) != 5 || len(a.Hits[4].Fields) != 1) {
			err = fmt.Errorf("%d hits", len(a.Hits))
		}
		answered <- err
	}()
	waiting(n.indexes.turns.large, 1)
	give()
	must(t, <-answered)
	if s := n.indexes.turns.large.Stats(); s.Held != largeQueries-1 || s.Waiting != 0 {
		t.Errorf("space is left to a query that has ended: %+v", s)
	}
}

// waits fails unless a query waits for a turn before it answers with so many documents.
func (n *world) waits(q *fairqueue.Queue, give func(), text string, want uint64) {
	n.t.Helper()
	answered := make(chan error)
	req := n.request(text)
	req.IncludeFields = []string{}
	go func() {
		a, err := n.indexes.Query(n.t.Context(), req)
		if err == nil && a.Total != want {
			err = fmt.Errorf("%d documents", a.Total)
		}
		answered <- err
	}()
	waiting(q, 1)
	give()
	must(n.t, <-answered)
}

// TestLargePhrase: what a phrase takes for the words of a long document is counted.
func TestLargePhrase(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.put("d", &content{Text: strings.Repeat("a ", smallBytes/8)})
	n.expectTotal("t:a", 1)
	n.waits(n.indexes.turns.large, held(t, n.indexes.turns.large, largeQueries), `t:"a a"`, 1)
}

// TestManyTerms: a query that has many terms looks for them in turns with others, and for each
// once.
func TestManyTerms(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.put("d", &content{Text: "a b"})
	n.indexes.turns = newTurns(1)
	give := held(t, n.indexes.turns.work, 1)
	n.expectTotal(strings.Repeat("t:a ", 4*shortTerms), 1)
	var terms strings.Builder
	for i := range shortTerms {
		fmt.Fprintf(&terms, "t:w%d ", i)
	}
	n.waits(n.indexes.turns.work, give, terms.String()+"t:b", 1)
}
