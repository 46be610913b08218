package view_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/script"
	"divan/shard/view"
	"divan/shard/view/reduce"
	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/storagetest"
)

// world is a node with some copies of a database.
type world struct {
	t       rapid.TB
	fs      storagetest.CrashFS
	ops     atomic.Int64 // until hook is called
	hook    func()
	engine  *storage.Engine
	shards  *shard.Local
	scripts *script.Engine
	indexes *index.Manager
	views   *view.Views
	copies  []string
	stop    func()
	docs    []*modelDoc // nil: not known
}

func newWorld(t rapid.TB, copies int) *world {
	t.Helper()
	w := &world{t: t, fs: storagetest.NewCrashFS()}
	w.open()
	for i := range copies {
		name := fmt.Sprintf("shards/%08x-%08x/db.1763600000", i, i)
		w.must(w.shards.Copies.Create(context.Background(), name, shard.CreateOptions{}))
		w.copies = append(w.copies, name)
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open() {
	w.t.Helper()
	counted := errorfs.Wrap(w.fs, errorfs.InjectorFunc(func(errorfs.Op) error {
		if w.ops.Add(-1) == 0 {
			w.hook()
		}
		return nil
	}))
	var err error
	w.engine, err = storage.NewEngine(storage.Options{Dir: "/data", FS: counted, CacheBytes: 8 << 20})
	w.must(err)
	w.shards = shard.New(shard.Options{Engine: w.engine})
	w.scripts = script.New(script.Options{})
	w.indexes = index.New(index.Options{Engine: w.engine, Shards: w.shards})
	w.views = view.New(view.Options{Indexes: w.indexes, Shards: w.shards, Scripts: w.scripts})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.indexes.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.stop = func() {
		cancel()
		running.Wait()
		for _, err := range []error{w.indexes.Close(), w.shards.Close(), w.scripts.Close(), w.engine.Close()} {
			if err != nil {
				w.t.Error(err)
			}
		}
	}
}

// crash runs work and cuts the power after so many calls of the file system, or
// at its end. The documents are as they were: work only builds indexes.
func (w *world) crash(rng *rand.Rand, ops int64, work func()) {
	w.t.Helper()
	var once sync.Once
	var left storagetest.CrashFS
	w.hook = func() {
		once.Do(func() { left = w.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(3) * 50, RNG: rng}) })
	}
	w.ops.Store(ops)
	work()
	w.hook()
	w.ops.Store(0)
	w.stop()
	w.fs = left
	w.open()
}

func (w *world) copyOf(id string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32()) % len(w.copies)
}

// documents lists the live documents.
func (w *world) documents() []*modelDoc {
	w.t.Helper()
	if w.docs != nil {
		return w.docs
	}
	out := []*modelDoc{}
	for _, name := range w.copies {
		s, err := w.shards.AllDocs(context.Background(), shard.DocsRequest{Copy: name, IncludeDocs: true, Conflicts: true, DeletedConflicts: true})
		w.must(err)
		var b shard.RowBatch
		for more := true; more; {
			more, err = s.Next(&b)
			w.must(err)
			for _, r := range b.Rows {
				d := &modelDoc{id: strings.Clone(r.ID), rev: r.Rev.String()}
				w.must(json.Unmarshal(r.Doc.Body, d))
				var members map[string]json.RawMessage
				w.must(json.Unmarshal(r.Doc.Body, &members))
				d.members = len(members)
				for _, losers := range [][]doc.Rev{r.Doc.Conflicts, r.Doc.DeletedConflicts} {
					d.members += min(len(losers), 1)
				}
				out = append(out, d)
			}
		}
		s.Close()
	}
	w.docs = out
	return out
}

// edit writes documents; what is refused, as a conflict, is left as it is.
func (w *world) edit(newEdits bool, edits ...shard.Edit) {
	w.t.Helper()
	w.docs = nil
	for i, name := range w.copies {
		var own []shard.Edit
		for _, e := range edits {
			if w.copyOf(e.ID) == i {
				own = append(own, e)
			}
		}
		if len(own) == 0 {
			continue
		}
		results, err := w.shards.Decide(context.Background(), shard.DecideRequest{Copy: name, NewEdits: newEdits, Edits: own, Insist: true})
		w.must(err)
		for _, r := range results {
			if r.Err != nil && !fault.Is(r.Err, fault.Conflict) {
				w.t.Fatal(r.Err)
			}
		}
	}
}

// revOf returns the winner's revision, zero when there is none.
func (w *world) revOf(id string) doc.Rev {
	w.t.Helper()
	d, err := w.shards.Open(context.Background(), shard.OpenRequest{Copy: w.copies[w.copyOf(id)], ID: id})
	if fault.Is(err, fault.NotFound) {
		return doc.Rev{}
	}
	w.must(err)
	return d.Rev
}

// question is one query to all copies.
type question struct {
	def  *view.Definition
	view modelView
	view.Request
	limit int // rows that are read; 0: all
}

// sortKey is by what a key is ordered in the view.
func (q *question) sortKey(key string) ([]byte, error) {
	of, _ := q.def.View(q.view.name)
	return of.AppendSortKey(nil, []byte(key))
}

// answers asks every copy and merges what they say, as a coordinator does.
func (w *world) answers(q *question) (head view.Head, rows []string, err error) {
	var f reduce.Function
	if q.Reduce {
		if f, err = w.views.Reducer(context.Background(), "/db.1", q.view.reduce, nil); err != nil {
			return head, nil, err
		}
	}
	var all []view.Row
	for _, name := range w.copies {
		h, own, err := w.ask(q, name)
		if err != nil {
			return head, nil, err
		}
		head.Total, head.Offset = head.Total+h.Total, head.Offset+h.Offset
		all = append(all, own...)
	}
	slices.SortStableFunc(all, func(a, b view.Row) int {
		c := cmp.Compare(a.Range, b.Range)
		if c != 0 {
			return c
		}
		if c = cmp.Or(bytes.Compare(a.Sort, b.Sort), strings.Compare(a.ID, b.ID)); q.Desc {
			c = -c
		}
		return c
	})
	for i := 0; i < len(all); {
		r := &all[i]
		if !q.Reduce {
			text := fmt.Sprintf("%d %s %s %s", r.Range, r.ID, r.Key, r.Value)
			if r.Doc != nil { // nil without IncludeDocs, and when the index is behind
				text += " " + r.Doc.Rev.String()
			}
			rows = append(rows, text)
			i++
			continue
		}
		var states [][]byte
		for ; i < len(all) && all[i].Range == r.Range && bytes.Equal(all[i].Sort, r.Sort); i++ {
			states = append(states, all[i].Value)
		}
		state, err := f.Rereduce(nil, states)
		if err != nil {
			return head, nil, err
		}
		value, err := f.Final(nil, state)
		if err != nil {
			value = []byte(err.Error())
		}
		rows = append(rows, fmt.Sprintf("%d %x %s", r.Range, r.Sort, value))
	}
	if q.limit > 0 && len(rows) > q.limit {
		rows = rows[:q.limit]
	}
	return head, rows, nil
}

// settled repeats what fails because a compaction is still giving up an index
// that was dropped.
func settled(work func() error) error {
	err := work()
	for fault.Is(err, fault.Unavailable) {
		runtime.Gosched()
		err = work()
	}
	return err
}

// ask reads the rows of one copy, as many as are wanted.
func (w *world) ask(q *question, name string) (view.Head, []view.Row, error) {
	req := q.Request
	req.Copy, req.Signature, req.Definition, req.View, req.Limit = name, q.def.Signature, q.def.Text, q.view.name, q.limit
	var s *view.Stream
	err := settled(func() (err error) {
		s, err = w.views.Query(context.Background(), req)
		return err
	})
	if err != nil {
		return view.Head{}, nil, err
	}
	defer s.Close()
	var out []view.Row
	var b view.Batch
	for more := true; more && (q.limit == 0 || len(out) < q.limit); {
		if more, err = s.Next(&b); err != nil {
			return s.Head, nil, err
		}
		for _, r := range b.Rows {
			r.Sort, r.Key, r.Value, r.ID = bytes.Clone(r.Sort), bytes.Clone(r.Key), bytes.Clone(r.Value), strings.Clone(r.ID)
			out = append(out, r)
		}
	}
	return s.Head, out, nil
}
