package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/shard"
	"divan/storage"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const node1 = "n1@127.0.0.1"

// options of a cluster under test.
type setup struct {
	nodes   int // 0: 1; the others are shard.Locals of their own that this node calls directly
	config  config.Values
	compile func([]byte) (shard.BatchMatcher, error)
	still   bool // do not run the coordinator's loop
}

// world is a coordinator with real copies on file systems in memory and a real
// Raft group of one.
type world struct {
	*Coordinator
	tb     testing.TB
	fleet  *fleet                  // the other nodes, as this one reaches them
	locals map[string]*shard.Local // by node
	disks  map[string]vfs.FS       // of those
	making sync.Mutex
	made   map[uint64]bool // copies of other nodes that were made; guarded by making
}

// lose removes the files of a copy of this node, which was never written to.
func (w *world) lose(copyName string) {
	w.tb.Helper()
	if err := w.disks[node1].RemoveAll("data/" + copyName); err != nil {
		w.tb.Fatal(err)
	}
}

func nodeName(i int) string { return fmt.Sprintf("n%d@127.0.0.1", i) }

func start(tb testing.TB, s setup) *world {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var running sync.WaitGroup
	run := func(what string, f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil {
				tb.Errorf("%s: %v", what, err)
			}
		})
	}
	tb.Cleanup(func() {
		cancel()
		running.Wait()
	})
	holder, err := config.New(config.Options{Flags: s.config})
	if err != nil {
		tb.Fatal(err)
	}
	group, err := meta.New(meta.Options{Self: meta.Node{Name: node1}, Bootstrap: true, Config: holder})
	if err != nil {
		tb.Fatal(err)
	}
	run("metadata", group.Run)
	wait, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	if err := group.WaitReady(wait); err != nil {
		tb.Fatal(err)
	}
	w := &world{tb: tb, locals: map[string]*shard.Local{}, disks: map[string]vfs.FS{}}
	other, _ := group.Node(node1) // the same program
	for i := range max(s.nodes, 1) {
		name := nodeName(i + 1)
		if i > 0 {
			other.Name = name
			if err := group.PutNode(ctx, other); err != nil {
				tb.Fatal(err)
			}
		}
		w.disks[name] = vfs.NewMem()
		w.locals[name] = newLocal(tb, w.disks[name], s.compile)
	}
	w.Coordinator, err = New(Options{
		NodeName: node1, Meta: group, Config: holder, Local: w.locals[node1], Logger: zap.NewNop(),
	})
	if err != nil {
		tb.Fatal(err)
	}
	w.fleet = newFleet(group, w.locals, w.makeOn)
	w.meet(w.fleet)
	w.repair = w.fleet
	tb.Cleanup(func() {
		if err := w.Close(); err != nil {
			tb.Error(err)
		}
	})
	if !s.still {
		run("coordinator", w.Run)
	}
	return w
}

func newLocal(tb testing.TB, disk vfs.FS, compile func([]byte) (shard.BatchMatcher, error)) *shard.Local {
	tb.Helper()
	cache := int64(8 << 20)
	if _, measured := tb.(*testing.B); measured {
		cache = 128 << 20
	}
	engine, err := storage.NewEngine(storage.Options{Dir: "data", FS: disk, CacheBytes: cache})
	if err != nil {
		tb.Fatal(err)
	}
	l := shard.New(shard.Options{Engine: engine, CompileSelector: compile})
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
		if err := engine.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// create makes a database and returns a handle on it.
func (w *world) create(name string, o CreateOptions) *DB {
	w.tb.Helper()
	if err := w.CreateDB(w.tb.Context(), name, o); err != nil {
		w.tb.Fatal(err)
	}
	w.makeElsewhere(name)
	return w.open(name)
}

func (w *world) open(name string) *DB {
	w.tb.Helper()
	d, err := w.DB(w.tb.Context(), name)
	if err != nil {
		w.tb.Fatal(err)
	}
	return d
}

// put writes one document on top of a revision and returns the new one.
func put(tb tester, d *DB, id string, parent doc.Rev, body string) doc.Rev {
	tb.Helper()
	r := update(tb, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: id, Parent: parent, Body: []byte(body)})[0]
	if r.Err != nil {
		tb.Fatalf("put %s: %v", id, r.Err)
	}
	return r.Rev
}

func update(tb tester, d *DB, o UpdateOptions, edits ...shard.Edit) []shard.EditResult {
	tb.Helper()
	o.User = shard.User{Name: "admin", Roles: []string{shard.AdminRole}}
	results, err := d.Update(tb.Context(), o, edits)
	if err != nil {
		tb.Fatal(err)
	}
	return results
}

// bulk writes new documents, body {"n":i}.
func bulk(tb tester, d *DB, ids ...string) []doc.Rev {
	tb.Helper()
	edits := make([]shard.Edit, len(ids))
	for i, id := range ids {
		edits[i] = shard.Edit{ID: id, Body: fmt.Appendf(nil, `{"n":%d}`, i)}
	}
	revs := make([]doc.Rev, len(ids))
	for i, r := range update(tb, d, UpdateOptions{NewEdits: true}, edits...) {
		if r.Err != nil {
			tb.Fatalf("write %s: %v", ids[i], r.Err)
		}
		revs[i] = r.Rev
	}
	return revs
}

// list returns a listing as one line: its rows' ids, "!" behind a missing one,
// "-" behind a deleted one; and its totals.
func list(tb tester, d *DB, q DocsQuery) (ids string, total, offset int64) {
	tb.Helper()
	rows, err := d.AllDocs(tb.Context(), q)
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		id := strings.Clone(rows.Row().ID)
		switch {
		case rows.Row().Missing:
			id += "!"
		case rows.Row().Deleted:
			id += "-"
		}
		out = append(out, id)
	}
	if err := rows.Err(); err != nil {
		tb.Fatal(err)
	}
	return strings.Join(out, " "), rows.Total, rows.Offset
}

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

func ptr(s string) *string { return &s }
