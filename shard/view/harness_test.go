package view

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/script"
	"divan/storage"
	"divan/storage/collate"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const copyName = "shards/00000000-ffffffff/db.1763600000"

// node is what a node has of one copy.
type node struct {
	tb      testing.TB
	engine  *storage.Engine
	local   *shard.Local
	scripts *script.Engine
	indexes *index.Manager
	views   *Views
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// startOn starts a node on a file system.
func startOn(tb testing.TB, fs vfs.FS) *node {
	tb.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: "/data", FS: fs, CacheBytes: 32 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	n := &node{tb: tb, engine: e, local: shard.New(shard.Options{Engine: e}), scripts: script.New(script.Options{})}
	n.indexes = index.New(index.Options{Engine: e, Shards: n.local})
	n.views = New(Options{Indexes: n.indexes, Shards: n.local, Scripts: n.scripts})
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	n.running.Go(func() {
		if err := n.indexes.Run(ctx); err != nil {
			tb.Error(err)
		}
	})
	n.running.Go(func() {
		if err := e.Run(ctx); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(n.stop)
	return n
}

// start starts a node with an empty copy.
func start(tb testing.TB) *node {
	tb.Helper()
	n := startOn(tb, vfs.NewMem())
	n.create(false)
	return n
}

func (n *node) create(partitioned bool) {
	n.tb.Helper()
	must(n.tb, n.local.Copies.Create(context.Background(), copyName, shard.CreateOptions{Partitioned: partitioned}))
}

func (n *node) stop() {
	if n.engine == nil {
		return
	}
	n.cancel()
	n.running.Wait()
	for _, err := range []error{n.indexes.Close(), n.local.Close(), n.scripts.Close(), n.engine.Close()} {
		if err != nil {
			n.tb.Error(err)
		}
	}
	n.engine = nil
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// put writes documents as other copies would: the stored revisions are replaced
// by a revision of the given position, whose ancestors have those below.
func (n *node) put(pos int, edits ...shard.Edit) {
	n.tb.Helper()
	for i := range edits {
		if edits[i].Body == nil {
			edits[i].Body = []byte("{}")
		}
		edits[i].Path = doc.Path{Start: uint64(pos)}
		for p := pos; p > 0; p-- {
			edits[i].Path.IDs = append(edits[i].Path.IDs, fmt.Sprintf("%032x", p))
		}
	}
	for len(edits) > 0 {
		some := edits[:min(len(edits), 500)]
		edits = edits[len(some):]
		res, err := n.local.Decide(context.Background(), shard.DecideRequest{Copy: copyName, Edits: some})
		must(n.tb, err)
		for i := range res {
			must(n.tb, res[i].Err)
		}
	}
}

func edit(id, body string) shard.Edit { return shard.Edit{ID: id, Body: []byte(body)} }

// define parses a design document.
func define(tb testing.TB, ddoc string) *Definition {
	tb.Helper()
	d, err := Parse([]byte(ddoc), false)
	must(tb, err)
	return d
}

// request asks a view of a definition.
func request(d *Definition, view string) Request {
	return Request{Copy: copyName, Signature: d.Signature, Definition: d.Text, View: view}
}

// answer is a whole answer, with rows as text.
type answer struct {
	Head
	rows []string
}

// query reads a whole answer. Rows are "id key value", reduced ones "key value".
func (n *node) query(req Request) (a answer) {
	n.tb.Helper()
	a, err := n.tryQuery(req)
	must(n.tb, err)
	return a
}

func (n *node) tryQuery(req Request) (a answer, err error) {
	ctx := context.Background()
	s, err := n.views.Query(ctx, req)
	if err != nil {
		return a, err
	}
	defer s.Close()
	a.Head = s.Head
	var b Batch
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			return a, err
		}
		for _, r := range b.Rows {
			text := fmt.Sprintf("%s %s %s", r.ID, r.Key, r.Value)
			if req.Reduce {
				v, err := s.t.reducers[s.sum.reducer].function.Final(nil, r.Value)
				if err != nil {
					return a, err
				}
				text = fmt.Sprintf("%s %s", r.Key, v)
			}
			if len(req.Ranges) > 1 {
				text = fmt.Sprintf("%d: %s", r.Range, text)
			}
			a.rows = append(a.rows, text)
		}
	}
	return a, nil
}

// key is the sort key of a JSON text.
func key(tb testing.TB, text string) []byte {
	tb.Helper()
	k, err := collate.AppendKey(nil, []byte(text))
	must(tb, err)
	return k
}
