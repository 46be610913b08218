package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/script"
	"divan/storage/fault"
)

// lossy is a definition whose function does something for documents that say so.
func lossy(tb testing.TB, does, reduce string) *Definition {
	tb.Helper()
	if reduce != "" {
		reduce = `,"reduce":"` + reduce + `"`
	}
	d := define(tb, `{"views":{"odd":{"map":"function (doc) { if (doc.odd) { `+does+` } else { emit(doc._id, 1); } }"`+reduce+`}}}`)
	d.Design = "_design/d"
	return d
}

// A document that needs more than a document may have is left out, the index goes on and
// says so, until the document is changed. A function that takes too long fails the query.
func TestDocumentsAreLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about sizes, for which the race detector takes minutes")
	}
	const timedOut = "OS process timed out."
	for _, c := range []struct{ name, does, want string }{
		{"a large key", "emit('x'.repeat(20e6));", "The limit of a document is exceeded: a key of 20000002 bytes is emitted, at most 8388608 are indexed."},
		{"large rows", "for (var i = 0; i < 7; i++) { emit(i, 'x'.repeat(10e6)); }", "The limit of a document is exceeded: more than 67108864 bytes of rows are emitted."},
		{"large rows that are caught", "for (var i = 0; i < 7; i++) { try { emit(i, 'x'.repeat(10e6)); } catch (e) {} }", "more than 67108864 bytes of rows"},
		{"many rows", "for (var i = 0; i < 1e7; i++) { emit(); }", "The limit of a document is exceeded: more than 1048576 rows are emitted."},
		{"endless rows", "for (;;) { emit(); }", timedOut},
		{"the stack", "(function f() { f(); })();", "The script calls functions more deeply than the stack allows."},
		{"the stack, for JSON", "JSON.parse('['.repeat(1e5)); emit(1);", "The script calls functions more deeply than the stack allows."},
		{"the stack, for a source", "eval('['.repeat(1e5)); emit(1);", "The script calls functions more deeply than the stack allows."},
		{"nested arrays", "var a = []; for (var i = 0; i < 6000; i++) { a = [a]; } emit(1, a);", "What the script gives out is too large: nested too deeply."},
		{"a long search", "emit('x'.repeat(2e6).indexOf('y'.repeat(2e3)));", "The script asks a built-in function for too much work in one call."},
		{"a long array", "var a = []; a.length = 4294967295; emit(1, a);", "What the script gives out is too large: array is too large."},
		{"a row that comes later", "Promise.resolve().then(function () { emit(1); });", "The script emits a row when its map function has returned already."},
		{"the stack, later", "return (async function () { (function f() { f(); })(); })();", "The script calls functions more deeply than the stack allows."},
		{"the stack, in an async function", "async function f() { (function g() { g(); })(); emit(1); } f();", "The script calls functions more deeply than the stack allows."},
		{"the memory", "var s = 'x'; for (;;) { s = s + s; s.charCodeAt(1); }", "The script needs too much memory."},
		{"what is fatal", "throw 'fatal_error';", "function raised 'fatal_error'"},
		{"the time", "for (;;) {}", timedOut},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startOn(t, vfs.NewMem())
			limit := time.Minute
			fails := c.want == timedOut || c.name == "what is fatal"
			if c.want == timedOut {
				limit = 300 * time.Millisecond
			}
			n.views.scripts = script.New(script.Options{Timeout: func() time.Duration { return limit }, Eval: func() bool { return true }})
			defer func() { _ = n.views.scripts.Close() }()
			n.create(false)
			n.put(1, edit("a", "{}"), edit("b", `{"odd":true}`), edit("c", "{}"))
			req := request(lossy(t, c.does, ""), "odd")
			req.Design = "_design/d"
			want := `[a "a" 1 c "c" 1]`
			a, err := n.tryQuery(req)
			if fails {
				if fault.Reason(err) != c.want {
					t.Errorf("%v", err)
				}
				req.Update, want = UpdateNever, `[a "a" 1]`
				a, err = n.tryQuery(req)
			}
			if err != nil || fmt.Sprint(a.rows) != want {
				t.Errorf("rows %v, %v", a.rows, err)
			}
			info, err := n.views.Info(t.Context(), copyName, lossy(t, c.does, "").Text)
			if left := len(info.Left) == 1 && info.Left[0].ID == "b" && strings.Contains(info.Left[0].Reason, c.want); err != nil || left == fails || info.LeftOut != uint64(len(info.Left)) {
				t.Errorf("left out %v, %v", info.Left, err)
			}
			n.put(2, edit("b", "{}"))
			req.Update = UpdateBefore
			if a := n.query(req); len(a.rows) != 3 {
				t.Errorf("rows %v", a.rows)
			}
			if info, err := n.views.Info(t.Context(), copyName, lossy(t, c.does, "").Text); err != nil || info.LeftOut != 0 || len(info.Left) != 0 {
				t.Errorf("left out %v, %v", info.Left, err)
			}
		})
	}
}

// What a document of the largest size may hold is indexed, counted and found, and
// goes when the document does.
func TestLargeRowsAreIndexed(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about sizes, for which the race detector takes minutes")
	}
	for _, c := range []struct{ name, does string }{
		{"key", "emit('k' + 'é'.repeat(4e6) + doc._id, 1);"},
		{"value", "emit(doc._id, 'x'.repeat(30e6));"},
		{"many rows", "for (var i = 0; i < 1e5; i++) { emit([i, doc._id], i); }"},
	} {
		for _, reduce := range []string{"", "_count"} {
			t.Run(c.name+reduce, func(t *testing.T) {
				n := start(t)
				n.put(1, edit("a", "{}"))
				req := request(lossy(t, c.does, reduce), "odd")
				n.query(req)
				n.put(1, edit("b", `{"odd":true}`), edit("c", `{"odd":true}`))
				rows := 3
				if c.name == "many rows" {
					rows = 200001
				}
				if a := n.query(req); len(a.rows) != rows || a.Total != uint64(rows) {
					t.Fatalf("%d rows, %d in all, want %d", len(a.rows), a.Total, rows)
				}
				if reduce != "" {
					req.Reduce = true
					if a := n.query(req); fmt.Sprint(a.rows) != fmt.Sprintf("[null %d]", rows) {
						t.Errorf("reduced to %v", a.rows)
					}
					req.Reduce = false
				}
				n.put(2, edit("b", "{}"), edit("c", "{}"))
				if a := n.query(req); fmt.Sprint(a.rows) != `[a "a" 1 b "b" 1 c "c" 1]` {
					t.Errorf("%d rows", len(a.rows))
				}
				n.checkBlocks(t, lossy(t, c.does, reduce))
			})
		}
	}
}

// Rows that go are weighed like those that come: documents of which little is left do
// not make a batch that is as large as all they had.
func TestRowsThatGoAreWeighed(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about sizes, for which the race detector takes minutes")
	}
	const docs, limit = 32, 1 << 20
	for _, reduce := range []string{"", "_count"} {
		n := start(t)
		n.views.large = limit
		var edits []shard.Edit
		var gone []index.Doc
		for i := range docs {
			id := fmt.Sprintf("d%02d", i)
			edits, gone = append(edits, edit(id, `{"odd":true}`)), append(gone, index.Doc{ID: id})
		}
		n.put(1, edits...)
		d := lossy(t, "for (var i = 0; i < 100; i++) { emit(['k'.repeat(4000), i], null); }", reduce)
		req := request(d, "odd")
		if a := n.query(req); a.Total != docs*100 {
			t.Fatalf("%d rows", a.Total)
		}
		use, x, err := n.views.acquire(t.Context(), copyName, n.views.spec(copyName, d))
		must(t, err)
		defer use.Release()
		reads, err := x.Begin(t.Context(), use.Index, docs)
		must(t, err)
		m, mapped, err := x.Map(t.Context(), gone, &index.Space{})
		if err != nil || mapped != docs {
			t.Fatalf("%d documents, %v", mapped, err)
		}
		b := use.Index.NewBatch(reads)
		defer b.Close()
		for first := 0; first < docs; {
			n, err := x.Apply(b, m, first, false)
			must(t, err)
			if first += n; n == 0 || b.Len() > 2*limit {
				t.Fatalf("a batch of %d bytes, for %d documents", b.Len(), n)
			}
			must(t, b.Commit(t.Context()))
		}
		must(t, x.End(t.Context(), use.Index))
		x.Rest()
		req.Update = UpdateNever
		if a := n.query(req); a.Total != 0 || len(a.rows) != 0 {
			t.Errorf("%d rows are left, %d are counted", len(a.rows), a.Total)
		}
		n.checkBlocks(t, d)
	}
}
