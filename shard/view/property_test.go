package view

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/view/reduce"
	"divan/storage/doc"
)

// modelViews are views whose rows a document lists: [[key, value], …].
const modelViews = `{"views":{
	"sum":{"map":"function (doc) { (doc.rows || []).forEach(function (r) { emit(r[0], r[1]); }); }","reduce":"_sum"},
	"count":{"map":"function (doc) { (doc.rows || []).forEach(function (r) { emit(r[0], r[1]); }); }","reduce":"_count"},
	"first":{"map":"function (doc) { if (doc.rows) { emit(doc.rows[0][0], doc._id); } }","reduce":"_first"},
	"last":{"map":"function (doc) { if (doc.rows) { emit(doc.rows[0][0], doc._id); } }","reduce":"_last"}}}`

// model is what the copy holds: of each live document its rows.
type model struct {
	docs map[string][][2]string
	path map[string][]string // ids of the winner's revisions, newest first, also of deleted documents
	revs int                 // revisions made; no purged one comes again
}

// rows returns the rows of a view in their order.
func (m *model) rows(tb fatalist, view string) (out []reduce.Row) {
	for _, id := range sortedKeys(m.docs) {
		for i, r := range m.docs[id] {
			if view == "first" || view == "last" {
				if i != 0 {
					continue
				}
				r[1] = `"` + id + `"`
			}
			out = append(out, reduce.Row{Sort: sortKey(tb, r[0]), Key: []byte(r[0]), ID: id, Value: []byte(r[1])})
		}
	}
	slices.SortStableFunc(out, func(a, b reduce.Row) int {
		return cmp.Or(bytes.Compare(a.Sort, b.Sort), strings.Compare(a.ID, b.ID), bytes.Compare(rawKey(tb, a.Value), rawKey(tb, b.Value)))
	})
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

type fatalist interface {
	Helper()
	Fatalf(format string, args ...any)
}

func sortKey(tb fatalist, text string) []byte {
	tb.Helper()
	k, err := (&ViewDefinition{}).AppendSortKey(nil, []byte(text))
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return k
}

// rawKey is by what rows of one document and key are ordered.
func rawKey(tb fatalist, value []byte) []byte {
	tb.Helper()
	k, err := (&ViewDefinition{Raw: true}).AppendSortKey(nil, value)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return k
}

// inRange reports whether a row lies in a range.
func inRange(r *reduce.Row, k *KeyRange) bool {
	side := func(b *Bound) int { // of the row, 0: at the bound
		c := bytes.Compare(r.Sort, b.Key)
		if c == 0 && b.HasID {
			c = strings.Compare(r.ID, b.ID)
		}
		return c
	}
	if k.Lo.Key != nil {
		if c := side(&k.Lo); c < 0 || c == 0 && k.Lo.Exclusive {
			return false
		}
	}
	if k.Hi.Key != nil {
		if c := side(&k.Hi); c > 0 || c == 0 && k.Hi.Exclusive {
			return false
		}
	}
	return true
}

// answer is what a request should give.
func (m *model) answer(tb fatalist, req Request) (rows []string, offset int) {
	all := m.rows(tb, req.View)
	if req.Desc {
		slices.Reverse(all)
		if !req.Reduce {
			sameRow := func(a, b *reduce.Row) bool { return a.ID == b.ID && bytes.Equal(a.Sort, b.Sort) }
			for from, to := 0, 1; from < len(all); from, to = to, to+1 {
				for to < len(all) && sameRow(&all[from], &all[to]) {
					to++
				}
				slices.Reverse(all[from:to])
			}
		}
	}
	ranges := req.Ranges
	if len(ranges) == 0 {
		ranges = []KeyRange{{}}
	}
	for i := range ranges {
		var list []reduce.Row
		for j := range all {
			if inRange(&all[j], &ranges[i]) {
				list = append(list, all[j])
			} else if i == 0 && len(list) == 0 && beforeRange(&all[j], &ranges[0], req.Desc) {
				offset++
			}
		}
		if req.Reduce {
			for _, g := range groups(tb, list, req) {
				rows = append(rows, label(g, i, len(ranges)))
			}
			continue
		}
		for j := range list {
			rows = append(rows, label(fmt.Sprintf("%s %s %s", list[j].ID, list[j].Key, list[j].Value), i, len(ranges)))
		}
	}
	return rows, offset
}

func label(row string, i, ranges int) string {
	if ranges > 1 {
		return fmt.Sprintf("%d: %s", i, row)
	}
	return row
}

// beforeRange reports whether a row comes before a range in the direction.
func beforeRange(r *reduce.Row, k *KeyRange, desc bool) bool {
	if desc {
		return k.Hi.Key != nil && !inRange(r, &KeyRange{Hi: k.Hi})
	}
	return k.Lo.Key != nil && !inRange(r, &KeyRange{Lo: k.Lo})
}

// groups reduces rows, given in the direction.
func groups(tb fatalist, list []reduce.Row, req Request) (out []string) {
	f, err := reduce.Builtin("_" + req.View)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	for len(list) > 0 {
		part := reduce.GroupSort(list[0].Sort, req.GroupLevel)
		n := 1
		for n < len(list) && bytes.Equal(reduce.GroupSort(list[n].Sort, req.GroupLevel), part) {
			n++
		}
		g := slices.Clone(list[:n])
		key, err := reduce.AppendGroupKey(nil, g[0].Key, req.GroupLevel)
		if err != nil {
			tb.Fatalf("%v", err)
		}
		if req.Desc {
			slices.Reverse(g)
		}
		state, err := f.Reduce(nil, g)
		if err == nil {
			state, err = f.Final(nil, state)
		}
		if err != nil {
			tb.Fatalf("%v", err)
		}
		out = append(out, fmt.Sprintf("%s %s", key, state))
		list = list[n:]
	}
	return out
}

func drawKey(t *rapid.T, what string) string {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(-3, 40), func(i int) string { return fmt.Sprint(i) }),
		rapid.SampledFrom([]string{`null`, `"a"`, `"A"`, `"b\u0000"`, `"ä"`, `{"a":1}`, `[]`, `true`, `"zz"`}),
		rapid.Map(rapid.SliceOfN(rapid.IntRange(0, 4), 1, 3), func(l []int) string {
			return strings.ReplaceAll(fmt.Sprint(l), " ", ",")
		}),
	).Draw(t, what)
}

func drawBound(t *rapid.T, ids []string, what string) (b Bound) {
	if rapid.IntRange(0, 4).Draw(t, what+" none") == 0 {
		return b
	}
	b.Key = sortKey(t, drawKey(t, what))
	b.Exclusive = rapid.Bool().Draw(t, what+" exclusive")
	if b.HasID = rapid.Bool().Draw(t, what+" has id"); b.HasID {
		b.ID = rapid.SampledFrom(append(ids, "", "zzz")).Draw(t, what+" id")
	}
	return b
}

// drawRequest makes a random request for one of the model's views.
func drawRequest(t *rapid.T, d *Definition, ids []string) Request {
	req := request(d, rapid.SampledFrom([]string{"sum", "count", "first", "last"}).Draw(t, "view"))
	req.Desc = rapid.Bool().Draw(t, "desc")
	req.Reduce = rapid.Bool().Draw(t, "reduce")
	if req.Reduce {
		req.GroupLevel = rapid.IntRange(GroupExact, 3).Draw(t, "level")
	}
	req.Limit = rapid.IntRange(0, 3).Draw(t, "limit")
	for range rapid.IntRange(0, 2).Draw(t, "ranges") {
		req.Ranges = append(req.Ranges, KeyRange{Lo: drawBound(t, ids, "lo"), Hi: drawBound(t, ids, "hi")})
	}
	return req
}

// check compares an answer with the model's.
func (m *model) check(t *rapid.T, n *node, req Request) {
	got, err := n.tryQuery(req)
	if err != nil {
		t.Fatalf("query %+v: %v", req, err)
	}
	want, offset := m.answer(t, req)
	if !slices.Equal(got.rows, want) {
		req.Definition = nil
		t.Fatalf("%+v:\ngot  %q\nwant %q", req, got.rows, want)
	}
	if req.Reduce {
		return
	}
	if total := len(m.rows(t, req.View)); got.Total != uint64(total) || len(want) > 0 && !strings.HasPrefix(want[0], "1:") && got.Offset != uint64(offset) {
		t.Fatalf("%+v: total %d, offset %d, want %d, %d", req, got.Total, got.Offset, total, offset)
	}
}

// edit draws an edit of a document and notes it.
func (m *model) edit(t *rapid.T, id string) shard.Edit {
	m.revs++
	m.path[id] = append([]string{fmt.Sprintf("%032x", m.revs)}, m.path[id]...)
	e := shard.Edit{ID: id, Body: []byte("{}"), Path: doc.Path{Start: uint64(len(m.path[id])), IDs: m.path[id]}}
	if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
		e.Deleted = true
		delete(m.docs, id)
		return e
	}
	var rows [][2]string
	var text []string
	for range rapid.IntRange(0, 4).Draw(t, "rows") {
		r := [2]string{drawKey(t, "key"), fmt.Sprint(rapid.IntRange(-5, 100).Draw(t, "value"))}
		rows = append(rows, r)
		text = append(text, "["+r[0]+","+r[1]+"]")
	}
	delete(m.docs, id)
	if len(rows) > 0 {
		e.Body = []byte(`{"rows":[` + strings.Join(text, ",") + `]}`)
		m.docs[id] = rows
	}
	return e
}

// purge removes a document for good.
func (m *model) purge(t *rapid.T, n *node, id string) {
	path := m.path[id]
	if len(path) == 0 {
		return
	}
	item := shard.PurgeItem{ID: id, Revs: []doc.Rev{{Pos: uint64(len(path)), ID: path[0]}}}
	if _, err := n.local.Purge(context.Background(), copyName, []shard.PurgeItem{item}); err != nil {
		t.Fatalf("purge: %v", err)
	}
	delete(m.docs, id)
	delete(m.path, id)
}

// TestViewsAgainstModel: after any writes, deletions and purges, with updates
// of the index in between in any order, an answer is that of sorting and
// reducing everything in memory.
func TestViewsAgainstModel(t *testing.T) {
	d := define(t, modelViews)
	rapid.Check(t, func(rt *rapid.T) {
		fs := vfs.NewMem()
		n := startOn(t, fs)
		n.create(false)
		long := rapid.SampledFrom([]uint64{3, 1 << 20}).Draw(rt, "long update")
		dense := rapid.SampledFrom([]uint64{1, 2, denseGroups}).Draw(rt, "rows of dense groups")
		large := rapid.SampledFrom([]int{1, 10000, index.CommitBytes}).Draw(rt, "bytes of a large batch")
		n.views.long, n.views.dense, n.views.large = long, dense, large
		defer func() { n.stop() }()
		m := &model{docs: map[string][][2]string{}, path: map[string][]string{}}
		docs := rapid.SampledFrom([]int{5, 60, 400}).Draw(rt, "documents")
		ids := make([]string, docs)
		for i := range ids {
			ids[i] = fmt.Sprintf("d%d", i)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				seen := map[string]bool{}
				var edits []shard.Edit
				for range rapid.IntRange(1, docs).Draw(t, "edits") {
					if id := rapid.SampledFrom(ids).Draw(t, "id"); !seen[id] {
						seen[id] = true
						edits = append(edits, m.edit(t, id))
					}
				}
				if _, err := n.local.Decide(context.Background(), shard.DecideRequest{Copy: copyName, Edits: edits}); err != nil {
					t.Fatalf("%v", err)
				}
			},
			"purge":  func(t *rapid.T) { m.purge(t, n, rapid.SampledFrom(ids).Draw(t, "id")) },
			"query":  func(t *rapid.T) { m.check(t, n, drawRequest(t, d, ids[:5])) },
			"blocks": func(t *rapid.T) { n.checkBlocks(t, d) },
			"restart": func(t *rapid.T) {
				n.stop()
				n = startOn(n.tb, fs)
				n.views.long, n.views.dense, n.views.large = long, dense, large
			},
		})
	})
}
