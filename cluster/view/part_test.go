package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/fanout/fanouttest"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	shardview "divan/shard/view"
	"divan/shard/view/reduce"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testCopy = "shards/00000000-ffffffff/db.1763600000"

// testViews has rows with the same key from several documents, and several from one.
const testViews = `{"views":{"v":{"map":"function (doc) { doc.keys.forEach(function (k, i) { emit(k, i); }); }","reduce":"_count"}}}`

// cut cuts the rows of views into small batches.
func cut(c replica.Call, f *fanouttest.Frail) {
	q, ok := c.(*replica.Asked[shardview.Request, replica.ViewRows])
	if !ok {
		return
	}
	q.Answer.Stream = &fanouttest.Rows[shardview.Row, shardview.Batch]{
		Stream: q.Answer.Stream, Frail: f,
		Take: func(b *shardview.Batch) (rows []shardview.Row) {
			for _, r := range b.Rows {
				r.Sort, r.Key, r.Value, r.ID = bytes.Clone(r.Sort), bytes.Clone(r.Key), bytes.Clone(r.Value), strings.Clone(r.ID)
				rows = append(rows, r)
			}
			return rows
		},
		Give: func(b *shardview.Batch, rows []shardview.Row) { b.Rows = append(b.Rows[:0], rows...) },
	}
}

// read reads a request from the copies, which break off as after says.
func read(t *testing.T, n *fanouttest.Database, req shardview.Request, after ...int) (out []string) {
	t.Helper()
	p := &part{req: req, order: order(req.Desc)}
	p.FailoverStream = fanout.FailoverStream[position, shardview.Head, shardview.Batch]{
		Database: n, Ctx: t.Context(), Log: zap.NewNop(), Kind: p, Patience: deciderPatience,
	}
	for i, a := range after {
		node := fmt.Sprint("n", i)
		n.Copies[node].After = a
		p.Copies = append(p.Copies, ring.Replica{Range: ring.Full(), Copy: ring.Copy{Node: node}, Name: testCopy})
	}
	defer p.Close()
	err := p.Start()
	if err == nil {
		err = p.begin()
	}
	for err == nil && p.row() != nil {
		r := p.row()
		value := string(r.Value)
		if req.Reduce {
			count, _ := reduce.Builtin("_count")
			final, err := count.Final(nil, r.Value)
			if err != nil {
				t.Fatal(err)
			}
			value = string(final)
		}
		out = append(out, fmt.Sprintf("%d %s %s %s", r.Range, r.Key, r.ID, value))
		err = p.advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// emitting writes documents that emit the keys.
func emitting(t *testing.T, l *shard.Local, docs [][]int) {
	t.Helper()
	req := shard.DecideRequest{Copy: testCopy, DB: "db", NewEdits: true, User: shard.User{Name: "adm", Roles: []string{shard.AdminRole}}}
	for i, keys := range docs {
		body, err := json.Marshal(map[string][]int{"keys": keys})
		if err != nil {
			t.Fatal(err)
		}
		req.Edits = append(req.Edits, shard.Edit{ID: fmt.Sprintf("d%03d", i), Body: body})
	}
	results, err := l.Decide(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// Wherever copies break off, the rows are those of one that does not.
func TestPartGoesOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		docs := make([][]int, 1+rng.IntN(30))
		for i := range docs {
			docs[i] = []int{}
			for range rng.IntN(6) {
				docs[i] = append(docs[i], rng.IntN(4))
			}
		}
		n := &fanouttest.Database{Copies: map[string]*fanouttest.Frail{}}
		for i := range 4 {
			local, views := newCopy(t)
			emitting(t, local, docs)
			node := fmt.Sprint("n", i)
			n.Copies[node] = &fanouttest.Frail{Local: replica.NewLocal(replica.Held{Shards: local, Views: views}), Node: node, Cut: cut}
		}
		def, err := shardview.Parse([]byte(testViews), false)
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			q := randomQuery(rng)
			ranges, err := q.ranges(&def.Views[0])
			if err != nil {
				t.Fatal(err)
			}
			req := shardview.Request{
				Signature: def.Signature, Definition: def.Text, View: "v", Ranges: ranges, Desc: q.Descending, Limit: rng.IntN(5),
				Reduce: q.Reduce, GroupLevel: q.GroupLevel,
			}
			want := read(t, n, req, fanouttest.Never)
			if rows := model(docs, &q); !slices.Equal(want, rows) {
				t.Fatalf("round %d: %+v of %v:\n%s\nwant\n%s", round, q, docs, strings.Join(want, "\n"), strings.Join(rows, "\n"))
			}
			after := []int{1 + rng.IntN(8), 1 + rng.IntN(8), rng.IntN(8), fanouttest.Never}
			if got := read(t, n, req, after...); !slices.Equal(got, want) {
				t.Fatalf("round %d: %+v of %v, breaking off after %v:\n%s\nwant\n%s", round, q, docs, after, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

func randomQuery(rng *rand.Rand) Query {
	key := func() []byte { return fmt.Append(nil, rng.IntN(5)) }
	someID := func() string { return fmt.Sprintf("d%03d", rng.IntN(30)) }
	q := Query{Descending: rng.IntN(2) == 0, InclusiveEnd: rng.IntN(3) > 0, Limit: NoLimit, Reduce: rng.IntN(3) == 0}
	if q.Reduce {
		q.GroupLevel = -rng.IntN(2)
	}
	switch rng.IntN(3) {
	case 0:
		q.HasKeys = true
		for range 1 + rng.IntN(4) {
			q.Keys = append(q.Keys, key())
		}
		if rng.IntN(2) == 0 {
			q.StartID = someID()
		}
		if rng.IntN(2) == 0 {
			q.EndID = someID()
		}
	case 1:
		if q.StartKey = key(); rng.IntN(2) == 0 {
			q.StartID = someID()
		}
		if rng.IntN(2) == 0 {
			if q.EndKey = key(); rng.IntN(2) == 0 {
				q.EndID = someID()
			}
		}
	}
	return q
}

// model computes the rows of a query in memory.
func model(docs [][]int, q *Query) (out []string) {
	type row struct {
		key   int
		id    string
		value int
	}
	var all []row
	for i, keys := range docs {
		for v, k := range keys {
			all = append(all, row{k, fmt.Sprintf("d%03d", i), v})
		}
	}
	slices.SortStableFunc(all, func(a, b row) int { // values in their order in both directions
		c := cmp.Or(a.key-b.key, strings.Compare(a.id, b.id))
		if q.Descending {
			c = -c
		}
		return c
	})
	// before reports whether a row comes before a bound, in the direction; with past
	// one at it counts as before.
	before := func(r row, key []byte, id string, past bool) bool {
		k := int(key[0] - '0')
		c := r.key - k
		if c == 0 && id != "" {
			c = strings.Compare(r.id, id)
		}
		if q.Descending {
			c = -c
		}
		return c < 0 || c == 0 && past
	}
	add := func(n int, keep func(r row) bool) {
		rows := slices.DeleteFunc(slices.Clone(all), func(r row) bool { return !keep(r) })
		if !q.Reduce {
			for _, r := range rows {
				out = append(out, fmt.Sprintf("%d %d %s %d", n, r.key, r.id, r.value))
			}
			return
		}
		if q.GroupLevel == 0 {
			if len(rows) > 0 {
				out = append(out, fmt.Sprintf("%d null  %d", n, len(rows)))
			}
			return
		}
		for len(rows) > 0 {
			k := slices.IndexFunc(rows, func(r row) bool { return r.key != rows[0].key })
			if k < 0 {
				k = len(rows)
			}
			out = append(out, fmt.Sprintf("%d %d  %d", n, rows[0].key, k))
			rows = rows[k:]
		}
	}
	if q.HasKeys {
		keys := slices.Clone(q.Keys)
		if q.Descending && !q.Reduce {
			slices.Reverse(keys)
		}
		for n, k := range keys {
			add(n, func(r row) bool { return !before(r, k, q.StartID, false) && before(r, k, q.EndID, q.InclusiveEnd) })
		}
		return out
	}
	add(0, func(r row) bool {
		if q.StartKey != nil && before(r, q.StartKey, q.StartID, false) {
			return false
		}
		return q.EndKey == nil || before(r, q.EndKey, q.EndID, q.InclusiveEnd)
	})
	return out
}
