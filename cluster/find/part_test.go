package find

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/fanout/fanouttest"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/find"
	"divan/shard/index"
	"divan/shard/ring"
	"divan/shard/view"
	"divan/storage"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const copyName = "shards/00000000-ffffffff/db.1763600000"

// newCopy returns a node's copies, in memory, with one that has documents whose n is
// their number modulo 10, every second of them.
func newCopy(t *testing.T, docs int) replica.Held {
	t.Helper()
	engine, err := storage.NewEngine(storage.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	l := shard.New(shard.Options{Engine: engine})
	indexes := index.New(index.Options{Engine: engine, Shards: l})
	views := view.New(view.Options{Indexes: indexes, Shards: l})
	t.Cleanup(func() {
		for _, c := range []func() error{indexes.Close, l.Close, engine.Close} {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
	})
	if err := l.Copies.Create(t.Context(), copyName, shard.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	req := shard.DecideRequest{Copy: copyName, NewEdits: true}
	for i := range docs {
		body := fmt.Appendf(nil, `{"n":%d}`, i%10)
		if i%2 == 1 {
			body = []byte(`{"m":1}`)
		}
		req.Edits = append(req.Edits, shard.Edit{ID: fmt.Sprintf("d%03d", i), Body: doc.StoredBody(body)})
	}
	if _, err := l.Decide(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return replica.Held{Shards: l, Indexes: indexes, Views: views}
}

// cut cuts what is found into small batches, of which some are empty.
func cut(c replica.Call, f *fanouttest.Frail) {
	q, ok := c.(*replica.Asked[find.Request, replica.Found])
	if !ok {
		return
	}
	q.Answer.Stream = &fanouttest.Rows[find.Row, find.Batch]{
		Stream: q.Answer.Stream, Frail: f, Empty: 3,
		Take: func(b *find.Batch) (rows []find.Row) {
			for _, r := range b.Rows {
				rows = append(rows, find.Row{Sort: bytes.Clone(r.Sort), ID: strings.Clone(r.ID), Doc: bytes.Clone(r.Doc)})
			}
			return rows
		},
		Give: func(b *find.Batch, rows []find.Row) {
			b.Rows, b.Figures, b.Moved = append(b.Rows[:0], rows...), find.Figures{}, len(rows) > 0
			if b.Moved {
				last := &rows[len(rows)-1]
				b.Last = find.Position{Sort: last.Sort, ID: last.ID}
			}
		},
	}
}

// read reads the rows of a range from copies that break off as after says.
func read(t *testing.T, n *fanouttest.Database, req find.Request, after []int) (out []string) {
	t.Helper()
	p := &part{req: req}
	p.FailoverStream = fanout.FailoverStream[*find.Position, head, find.Batch]{
		Database: n, Ctx: t.Context(), Log: zap.NewNop(), Kind: p, Patience: deciderPatience,
	}
	for i, a := range after {
		node := fmt.Sprint("n", i)
		n.Copies[node].After = a
		p.Copies = append(p.Copies, ring.Replica{Range: ring.Full(), Copy: ring.Copy{Node: node}, Name: copyName})
	}
	defer p.Close()
	err := p.Start()
	if err == nil {
		err = p.fill()
	}
	for err == nil && p.row() != nil {
		out = append(out, p.row().ID+" "+string(p.row().Doc))
		p.at++
		err = p.fill()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGoesOnFromAnotherCopy breaks copies off at every batch, and expects the answer
// of one that does not.
func TestGoesOnFromAnotherCopy(t *testing.T) {
	held := newCopy(t, 60)
	n := &fanouttest.Database{Copies: map[string]*fanouttest.Frail{}}
	for i := range 3 {
		node := fmt.Sprint("n", i)
		n.Copies[node] = &fanouttest.Frail{Local: replica.NewLocal(held), Node: node, Cut: cut}
	}
	body := []byte(`{"language":"query","views":{"n":{"map":{"fields":{"n":"asc"}},"reduce":"_count"}}}`)
	def, err := view.Parse(body, false)
	if err != nil {
		t.Fatal(err)
	}
	const enough = 1000
	for _, indexed := range []bool{false, true} {
		for _, desc := range []bool{false, true} {
			for _, limit := range []int{0, 7} {
				req := find.Request{Selector: []byte(`{"n":{"$gt":1}}`), Fields: []byte(`["n"]`), Desc: desc, Limit: limit}
				if indexed {
					req.Index = &find.Index{Signature: def.Signature, Definition: def.Text, View: "n"}
				}
				want := read(t, n, req, []int{enough})
				if len(want) != 24 && limit == 0 || len(want) != 7 && limit > 0 {
					t.Fatalf("%d rows", len(want))
				}
				for range 40 {
					after := []int{rand.IntN(10), rand.IntN(10), enough}
					if got := read(t, n, req, after); !slices.Equal(got, want) {
						t.Fatalf("index %v, desc %v, breaking off after %v: %q, want %q", indexed, desc, after, got, want)
					}
				}
			}
		}
	}
}

func TestOrder(t *testing.T) {
	m := quorum.NewMerge(3, order(true))
	places := []place{{[]byte("b"), "1"}, {[]byte("b"), "2"}, {[]byte("a"), "9"}}
	for i, p := range places {
		m.Set(i, p)
	}
	if i, ok := m.Best(); !ok || i != 1 {
		t.Errorf("%d is first", i)
	}
}
