package index

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"divan/shard"
	"divan/storage"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	copyName  = "shards/00000000-ffffffff/db.1763600000"
	signature = "0123456789abcdef0123456789abcdef"
)

// node is what a node has of one copy, with an index that holds the revision of
// each document by its id.
type node struct {
	t      *testing.T
	engine *storage.Engine
	shards *shard.Local
	m      *Manager
	kind   *revisions
	stop   func()
}

// revisions is that kind of index, which also counts the documents.
type revisions struct {
	onBegin func()                 // nil: nothing
	onMap   func(docs []Doc) error // nil: nothing
	mapped  atomic.Int64           // documents
	weigh   func(d Doc) int        // memory that a document takes; nil: none
	fail    func(d Doc) error      // nil: none does
	leaves  bool                   // the index goes on without one that fails
	took    func(n int)            // hears what a document takes; nil: no hook
	closed  func(n int)            // hears what applied documents took; nil: no hook
	atOnce  int                    // documents that Apply takes at most; 0: any number
	begun   []uint64               // changes that were announced, by update
	closes  int                    // calls of Close

	// Of the update that runs:
	x     *storage.Index
	count int
}

type revision struct {
	id  string
	rev string // empty: the document is gone

	bytes int // that were taken for it
}

// Begin implements Kind.
func (r *revisions) Begin(_ context.Context, x *storage.Index, changes uint64) (bool, error) {
	r.begun = append(r.begun, changes)
	if r.onBegin != nil {
		r.onBegin()
	}
	text, _, err := x.Get(nil, []byte(countKey))
	r.count, r.x = len(text), x
	return false, err
}

// countKey is where the index keeps how many documents it holds, as so many bytes.
const countKey = "count"

// Map implements Kind.
func (r *revisions) Map(ctx context.Context, docs []Doc, space *Space) (Mapped, int, error) {
	r.mapped.Add(int64(len(docs)))
	if r.onMap != nil {
		if err := r.onMap(docs); err != nil {
			return []revision{}, 0, err
		}
	}
	var out []revision
	for _, d := range docs {
		if space.Full() {
			break
		}
		one := revision{id: d.ID}
		if d.Doc != nil {
			one.rev = d.Doc.Rev.String()
		}
		if r.fail != nil {
			if err := r.fail(d); err != nil {
				return out, len(out), &DocumentError{ID: d.ID, Function: "test", Err: err, LeftOut: r.leaves}
			}
		}
		if r.weigh != nil {
			one.bytes = r.weigh(d)
			if !space.Take(one.bytes) {
				break
			}
			if r.took != nil {
				r.took(one.bytes)
			}
		}
		out = append(out, one)
	}
	return out, len(out), ctx.Err()
}

// Apply implements Kind.
func (r *revisions) Apply(b *storage.IndexBatch, m Mapped, first int, fresh bool) (n int, err error) {
	for _, one := range m.([]revision)[first:] {
		if n > 0 && n == r.atOnce && !fresh {
			break
		}
		n++
		key := []byte("r" + one.id)
		if !fresh {
			_, had, err := r.x.Get(nil, key)
			if err != nil {
				return n, err
			}
			if had {
				r.count--
			}
		}
		if one.rev == "" {
			b.Delete(key)
		} else {
			r.count++
			b.Set(key, []byte(one.rev))
		}
		if r.closed != nil {
			r.closed(one.bytes)
		}
	}
	b.Set([]byte(countKey), make([]byte, r.count))
	return n, nil
}

// gathering is that kind as a Gatherer. A document does not come twice in a batch.
type gathering struct {
	*revisions
	left    []revision
	flushes int // with something
}

// Apply implements Kind.
func (g *gathering) Apply(_ *storage.IndexBatch, m Mapped, first int, _ bool) (n int, err error) {
	g.left = append(g.left, m.([]revision)[first:]...)
	return len(m.([]revision)) - first, nil
}

// Flush implements Gatherer.
func (g *gathering) Flush(b *storage.IndexBatch) error {
	if len(g.left) > 0 {
		g.flushes++
	}
	_, err := g.revisions.Apply(b, g.left, 0, false)
	g.left = nil
	return err
}

// Begin implements Kind.
func (g *gathering) Begin(ctx context.Context, x *storage.Index, changes uint64) (bool, error) {
	g.left = nil
	return g.revisions.Begin(ctx, x, changes)
}

// End implements Kind.
func (r *revisions) End(context.Context, *storage.Index) error { return nil }

// Rest implements Kind.
func (r *revisions) Rest() { r.x = nil }

// Close implements Kind.
func (r *revisions) Close() { r.closes++ }

// startOn starts a node on a file system.
func startOn(t *testing.T, fs vfs.FS) *node {
	t.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: "data", FS: fs, CacheBytes: 8 << 20})
	must(t, err)
	n := &node{t: t, engine: e, kind: &revisions{}}
	n.shards = shard.New(shard.Options{Engine: e, OnDrop: func(name string) { n.m.CopyDropped(name) }})
	n.m = New(Options{Engine: e, Shards: n.shards, Workers: 2})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.m.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	n.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		for _, err := range []error{n.m.Close(), n.shards.Close(), e.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(n.stop)
	return n
}

func start(t *testing.T) *node {
	t.Helper()
	n := startOn(t, vfs.NewMem())
	must(t, n.shards.Copies.Create(t.Context(), copyName, shard.CreateOptions{}))
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (n *node) spec() Spec {
	return Spec{Name: Name{View, signature}, Design: "_design/d", Open: func(context.Context) (Kind, bool, error) { return n.kind, false, nil }}
}

// use opens the index until release.
func (n *node) use() (u *Use, release func()) {
	n.t.Helper()
	u, err := n.m.Acquire(n.t.Context(), copyName, n.spec())
	must(n.t, err)
	release = sync.OnceFunc(u.Release)
	n.t.Cleanup(release)
	return u, release
}

// write writes documents d<from> to d<to-1>, each with a generation more than before.
func (n *node) write(from, to, generation int, deleted bool) {
	n.t.Helper()
	for from < to {
		req := shard.DecideRequest{Copy: copyName}
		for ; from < to && len(req.Edits) < 500; from++ {
			e := shard.Edit{ID: fmt.Sprintf("d%05d", from), Body: []byte("{}"), Deleted: deleted, Path: doc.Path{Start: uint64(generation)}}
			for g := generation; g > 0; g-- {
				e.Path.IDs = append(e.Path.IDs, fmt.Sprintf("%032x", g))
			}
			req.Edits = append(req.Edits, e)
		}
		results, err := n.shards.Decide(n.t.Context(), req)
		must(n.t, err)
		for _, r := range results {
			must(n.t, r.Err)
		}
	}
}

// listed is what the copy holds.
func (n *node) listed() map[string]string {
	n.t.Helper()
	s, err := n.shards.AllDocs(n.t.Context(), shard.DocsRequest{Copy: copyName})
	must(n.t, err)
	defer s.Close()
	out := map[string]string{}
	var b shard.RowBatch
	for more := true; more; {
		more, err = s.Next(&b)
		must(n.t, err)
		for _, r := range b.Rows {
			out[strings.Clone(r.ID)] = r.Rev.String()
		}
	}
	return out
}

// indexed is what the index holds.
func (u *Use) indexed(t *testing.T) map[string]string {
	t.Helper()
	snap, err := u.Index.Snapshot()
	must(t, err)
	defer snap.Close()
	it, err := snap.Iterate([]byte("r"), []byte("s"))
	must(t, err)
	out := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		must(t, err)
		out[string(bytes.TrimPrefix(it.Key(), []byte("r")))] = string(v)
	}
	must(t, it.Close())
	if count, _, err := snap.Get(nil, []byte(countKey)); err != nil || len(count) != len(out) {
		t.Fatalf("the index counts %d documents and holds %d: %v", len(count), len(out), err)
	}
	return out
}

// built is use of an index that is up to date.
func (n *node) built() {
	n.t.Helper()
	u, release := n.use()
	n.check(u)
	release()
}

// check updates the index and compares it with the copy.
func (n *node) check(u *Use) {
	n.t.Helper()
	must(n.t, u.Update(n.t.Context()))
	if got, want := u.indexed(n.t), n.listed(); !maps.Equal(got, want) {
		for id := range want {
			if got[id] == want[id] {
				delete(got, id)
				delete(want, id)
			}
		}
		n.t.Fatalf("the index has %v, the copy %v", got, want)
	}
}
