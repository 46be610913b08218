package find

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/find"
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
	views := view.New(view.Options{Engine: engine, Shards: l})
	t.Cleanup(func() {
		for _, c := range []func() error{views.Close, l.Close, engine.Close} {
			if err := c(); err != nil {
				t.Error(err)
			}
		}
	})
	if err := l.Create(t.Context(), copyName, shard.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	req := shard.UpdateRequest{Copy: copyName, NewEdits: true}
	for i := range docs {
		body := fmt.Appendf(nil, `{"n":%d}`, i%10)
		if i%2 == 1 {
			body = []byte(`{"m":1}`)
		}
		req.Edits = append(req.Edits, shard.Edit{ID: fmt.Sprintf("d%03d", i), Body: doc.StoredBody(body)})
	}
	if _, err := l.Update(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return replica.Held{Shards: l, Views: views}
}

// frail is the copies of a node that breaks off after some batches.
type frail struct {
	*replica.Local
	node  string
	after int // batches of up to three rows
}

// Do implements replica.Copies.
func (f *frail) Do(ctx context.Context, c replica.Call) error {
	if f.after == 0 {
		return fanout.NodeDown(f.node)
	}
	err := c.On(ctx, f.Local)
	if q, ok := c.(*replica.Asked[find.Request, replica.Found]); ok && err == nil {
		q.Answer.Stream = &frailRows{from: q.Answer.Stream, copies: f}
	}
	return err
}

// frailRows cuts batches into small ones, of which some are empty.
type frailRows struct {
	from   replica.Stream[find.Batch]
	copies *frail
	left   []find.Row
	looks  find.Figures
	last   find.Position
	ended  bool
	turns  int
}

func (f *frailRows) Next(b *find.Batch) (more bool, err error) {
	if f.copies.after == 0 {
		return false, fanout.NodeDown(f.copies.node)
	}
	f.copies.after--
	var batch find.Batch
	for len(f.left) == 0 && !f.ended {
		more, err := f.from.Next(&batch)
		if err != nil {
			return false, err
		}
		f.ended, f.last = !more, batch.Last
		f.looks.Add(batch.Figures)
		for _, r := range batch.Rows {
			f.left = append(f.left, find.Row{Sort: bytes.Clone(r.Sort), ID: strings.Clone(r.ID), Doc: bytes.Clone(r.Doc)})
		}
	}
	b.Rows, b.Figures, b.Moved = b.Rows[:0], find.Figures{}, false
	if f.turns++; f.turns%3 == 0 {
		return true, nil
	}
	n := min(3, len(f.left))
	b.Rows = append(b.Rows, f.left[:n]...)
	f.left = f.left[n:]
	if n > 0 {
		b.Moved, b.Last = true, find.Position{Sort: b.Rows[n-1].Sort, ID: b.Rows[n-1].ID}
	}
	return len(f.left) > 0 || !f.ended, nil
}

func (f *frailRows) Close() { f.from.Close() }

// nodes is a database with a copy on each of some nodes, for a caller that has none.
type nodes struct {
	copies  map[string]*frail
	latency fanout.Latency
}

func (n *nodes) Node() string                       { return "caller" }
func (n *nodes) Replica(node string) replica.Copies { return n.copies[node] }
func (n *nodes) Reads() *fanout.Latency             { return &n.latency }
func (n *nodes) NoteNoCopy(error)                   {}
func (n *nodes) Ended(err error) error              { return err }

func (n *nodes) Spawn(f func()) bool {
	go f()
	return true
}

func (n *nodes) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// read reads the rows of a range from copies that break off as after says.
func (n *nodes) read(t *testing.T, req find.Request, after []int) (out []string) {
	t.Helper()
	p := &part{req: req}
	p.FailoverStream = fanout.FailoverStream[*find.Position, head, find.Batch]{
		Database: n, Ctx: t.Context(), Log: zap.NewNop(), Kind: p, Patience: deciderPatience,
	}
	for i, a := range after {
		node := fmt.Sprint("n", i)
		n.copies[node].after = a
		p.Copies = append(p.Copies, fanout.Target{Range: ring.Full(), Name: copyName, Node: node})
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
	n := &nodes{copies: map[string]*frail{}}
	for i := range 3 {
		n.copies[fmt.Sprint("n", i)] = &frail{Local: replica.NewLocal(held), node: fmt.Sprint("n", i)}
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
				want := n.read(t, req, []int{enough})
				if len(want) != 24 && limit == 0 || len(want) != 7 && limit > 0 {
					t.Fatalf("%d rows", len(want))
				}
				for range 40 {
					after := []int{rand.IntN(10), rand.IntN(10), enough}
					if got := n.read(t, req, after); !slices.Equal(got, want) {
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
