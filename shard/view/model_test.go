package view_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/view"
	"divan/shard/view/reduce"
	"divan/storage/collate"
	"divan/storage/doc"
)

// The model computes each answer from the documents, as the copies list them,
// by sorting and reducing everything in memory. Its map functions are those of
// modelDesign, written in Go.

const (
	mapNumbers = `function (doc) { if (doc.keys) { doc.keys.forEach(function (k) { emit(k, doc.n); }); } }`
	mapValues  = `function (doc) { if (doc.keys) { for (var i = 0; i < doc.keys.length; i++) { emit([doc.g, doc.keys[i]], doc.v); } } emit(doc._id, doc._rev); }`
	mapWhole   = `function (doc) { emit(Object.keys(doc).length, null); }`
)

// countInJavaScript is _count.
const countInJavaScript = `function (keys, values, rereduce) { return rereduce ? sum(values) : values.length; }`

// modelMaps are the same functions; each document's rows in their order.
func modelMaps() map[string]func(d *modelDoc) []modelRow {
	return map[string]func(d *modelDoc) []modelRow{
		mapNumbers: func(d *modelDoc) (out []modelRow) {
			for _, k := range d.Keys {
				out = append(out, modelRow{key: string(k), value: string(d.N)})
			}
			return out
		},
		mapValues: func(d *modelDoc) (out []modelRow) {
			for _, k := range d.Keys {
				out = append(out, modelRow{key: fmt.Sprintf("[%d,%s]", d.G, k), value: string(d.V)})
			}
			return append(out, modelRow{key: strconv.Quote(d.id), value: strconv.Quote(d.rev)})
		},
		mapWhole: func(d *modelDoc) []modelRow {
			return []modelRow{{key: strconv.Itoa(2 + d.members), value: "null"}}
		},
	}
}

type modelView struct {
	name, mapping, reduce string
	raw                   bool
}

func modelViews() []modelView {
	return []modelView{
		{name: "sum", mapping: mapNumbers, reduce: "_sum"},
		{name: "stats", mapping: mapNumbers, reduce: "_stats"},
		{name: "count", mapping: mapNumbers, reduce: "_count"},
		{name: "rows", mapping: mapNumbers},
		{name: "first", mapping: mapValues, reduce: "_first"},
		{name: "last", mapping: mapValues, reduce: "_last"},
		{name: "top", mapping: mapValues, reduce: "_top_3"},
		{name: "distinct", mapping: mapValues, reduce: "_approx_count_distinct"},
		{name: "raw", mapping: mapNumbers, reduce: "_stats", raw: true},
		{name: "whole", mapping: mapWhole, reduce: "_count"},
		{name: "script", mapping: mapNumbers, reduce: countInJavaScript},
	}
}

// modelDesign is a design document with the views.
func modelDesign(options string) []byte {
	views := map[string]map[string]any{}
	for _, v := range modelViews() {
		views[v.name] = map[string]any{"map": v.mapping}
		if v.reduce != "" {
			views[v.name]["reduce"] = v.reduce
		}
		if v.raw {
			views[v.name]["options"] = map[string]string{"collation": "raw"}
		}
	}
	text, _ := json.Marshal(views) // of strings
	return fmt.Appendf(nil, `{"options":{%s},"views":%s}`, options, text)
}

// modelDoc is a document that the functions above map.
type modelDoc struct {
	id, rev string
	members int
	Keys    []json.RawMessage `json:"keys"`
	N       json.RawMessage   `json:"n"`
	V       json.RawMessage   `json:"v"`
	G       int               `json:"g"`
}

type modelRow struct {
	sort       []byte
	key, value string
	sortValue  []byte // by which rows of one document and key are ordered
	doc        *modelDoc
}

// expect computes the same.
func (w *world) expect(q *question) (head view.Head, rows []string) {
	w.t.Helper()
	var all []modelRow
	mappings := modelMaps()
	for _, d := range w.documents() {
		for _, r := range mappings[q.view.mapping](d) {
			if q.view.mapping == mapWhole && q.def.LocalSeq {
				r.key = strconv.Itoa(3 + d.members)
			}
			var err error
			r.sort, err = q.sortKey(r.key)
			w.must(err)
			r.doc = d
			all = append(all, r)
		}
	}
	for i := range all {
		var err error
		all[i].sortValue, err = collate.AppendRawKey(nil, []byte(all[i].value))
		w.must(err)
	}
	slices.SortStableFunc(all, func(a, b modelRow) int {
		return cmp.Or(bytes.Compare(a.sort, b.sort), strings.Compare(a.doc.id, b.doc.id), bytes.Compare(a.sortValue, b.sortValue))
	})
	if q.Desc {
		slices.Reverse(all)
		if !q.Reduce { // rows of one document and key keep their order in both directions
			reverseRuns(all, func(a, b *modelRow) bool { return a.doc.id == b.doc.id && bytes.Equal(a.sort, b.sort) })
		}
	}
	ranges := q.Ranges
	if len(ranges) == 0 {
		ranges = []view.KeyRange{{}}
	}
	if !q.Reduce {
		head.Total = uint64(len(all))
		for _, r := range all {
			if q.Desc && !below(&r, &ranges[0].Hi) || !q.Desc && !above(&r, &ranges[0].Lo) {
				head.Offset++
			}
		}
	}
	for i := range ranges {
		var in []modelRow
		for _, r := range all {
			if above(&r, &ranges[i].Lo) && below(&r, &ranges[i].Hi) {
				in = append(in, r)
			}
		}
		if q.Reduce {
			rows = append(rows, w.groups(q, i, in)...)
			continue
		}
		for _, r := range in {
			text := fmt.Sprintf("%d %s %s %s", i, r.doc.id, r.key, r.value)
			if q.IncludeDocs {
				text += " " + r.doc.rev
			}
			rows = append(rows, text)
		}
	}
	if q.limit > 0 && len(rows) > q.limit {
		rows = rows[:q.limit]
	}
	return head, rows
}

// reverseRuns turns each run of rows round that are the same.
func reverseRuns[R any](rows []R, same func(a, b *R) bool) {
	for from, to := 0, 1; from < len(rows); from, to = to, to+1 {
		for to < len(rows) && same(&rows[from], &rows[to]) {
			to++
		}
		slices.Reverse(rows[from:to])
	}
}

// above and below say on which side of a bound a row is.
func above(r *modelRow, b *view.Bound) bool {
	c := compareBound(r, b)
	return b.Key == nil || c > 0 || c == 0 && !b.Exclusive
}

func below(r *modelRow, b *view.Bound) bool {
	c := compareBound(r, b)
	return b.Key == nil || c < 0 || c == 0 && !b.Exclusive
}

func compareBound(r *modelRow, b *view.Bound) int {
	c := bytes.Compare(r.sort, b.Key)
	if c == 0 && b.HasID {
		c = strings.Compare(r.doc.id, b.ID)
	}
	return c
}

// groups reduces the rows of a range.
func (w *world) groups(q *question, number int, in []modelRow) (out []string) {
	w.t.Helper()
	source := q.view.reduce
	if source == countInJavaScript {
		source = "_count"
	}
	f, err := reduce.Builtin(source)
	w.must(err)
	for i := 0; i < len(in); {
		group := reduce.GroupSort(in[i].sort, q.GroupLevel)
		var rows []reduce.Row
		for ; i < len(in) && bytes.Equal(reduce.GroupSort(in[i].sort, q.GroupLevel), group); i++ {
			rows = append(rows, reduce.Row{Sort: in[i].sort, Key: []byte(in[i].key), ID: in[i].doc.id, Value: []byte(in[i].value)})
		}
		if q.Desc { // a function sees rows in ascending order
			slices.Reverse(rows)
		}
		state, err := f.Reduce(nil, rows)
		w.must(err)
		value, err := f.Final(nil, state)
		if err != nil {
			value = []byte(err.Error())
		}
		out = append(out, fmt.Sprintf("%d %x %s", number, group, value))
	}
	return out
}

// compare asks a question and fails when the answer is another one than that of
// the model.
func (w *world) compare(q *question) {
	w.t.Helper()
	head, rows, err := w.answers(q)
	w.must(err)
	wantHead, want := w.expect(q)
	if q.Reduce {
		head.Total, head.Offset = 0, 0
	}
	if head.Total != wantHead.Total || head.Offset != wantHead.Offset {
		w.t.Fatalf("%+v of %s: %d rows before %d, want %d before %d", q.Request, q.view.name, head.Offset, head.Total, wantHead.Offset, wantHead.Total)
	}
	for i := range max(len(rows), len(want)) {
		if i >= len(rows) || i >= len(want) || rows[i] != want[i] {
			w.t.Fatalf("%+v of %s: %d rows, want %d; from row %d on:\n got %q\nwant %q", q.Request, q.view.name, len(rows), len(want), i,
				rows[min(i, len(rows)):min(i+5, len(rows))], want[min(i, len(want)):min(i+5, len(want))])
		}
	}
}

func modelKeys() []string {
	return []string{
		`null`, `true`, `0`, `1`, `1.5`, `-7`, `""`, `"a"`, `"A"`, `"b"`, `"é"`, `"e\u0301"`, `[]`, `["a"]`, `["a",1]`, `["a",{}]`, `["a",2,3]`,
		`["b",[1,2]]`, `{}`, `{"a":1}`, `2`, `3`, `4`, `5`,
	}
}

// body draws the body of a document.
func body(t *rapid.T) []byte {
	keys := rapid.SliceOfN(rapid.SampledFrom(modelKeys()), 0, 30).Draw(t, "keys")
	n := rapid.SampledFrom([]string{"1", "2.5", "-3", "1000000", "0.1"}).Draw(t, "n")
	v := rapid.SampledFrom([]string{"1", "null", `"x"`, "[1,2]", `{"a":"b"}`, "0.25", "7"}).Draw(t, "v")
	more := ""
	if rapid.Bool().Draw(t, "more") {
		more = `,"extra":{"keys":[1]}`
	}
	text := fmt.Appendf(nil, `{"keys":[%s],"n":%s,"v":%s,"g":%d%s}`, strings.Join(keys, ","), n, v, rapid.IntRange(0, 3).Draw(t, "g"), more)
	return canonical(t, text)
}

func canonical(t *rapid.T, text []byte) []byte {
	out, err := doc.Canonical(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func bound(t *rapid.T, q *question, name string) (b view.Bound) {
	if !rapid.Bool().Draw(t, name) {
		return b
	}
	key := rapid.SampledFrom(modelKeys()).Draw(t, name+" key")
	if rapid.Bool().Draw(t, name+" of the other view") {
		key = fmt.Sprintf("[%d,%s]", rapid.IntRange(0, 3).Draw(t, "g"), key)
	}
	sort, err := q.sortKey(key)
	if err != nil {
		t.Fatal(err)
	}
	b.Key, b.Exclusive = sort, rapid.Bool().Draw(t, name+" exclusive")
	if b.HasID = rapid.IntRange(0, 3).Draw(t, name+" has id") == 0; b.HasID {
		b.ID = docID(t)
	}
	return b
}

func docID(t *rapid.T) string { return fmt.Sprintf("d%02d", rapid.IntRange(0, 29).Draw(t, "document")) }

// ask draws a question.
func ask(t *rapid.T, defs []*view.Definition) *question {
	q := &question{def: defs[rapid.IntRange(0, len(defs)-1).Draw(t, "definition")], view: rapid.SampledFrom(modelViews()).Draw(t, "view")}
	for range rapid.IntRange(0, 2).Draw(t, "ranges") {
		q.Ranges = append(q.Ranges, view.KeyRange{Lo: bound(t, q, "lo"), Hi: bound(t, q, "hi")})
	}
	q.Desc = rapid.Bool().Draw(t, "descending")
	q.limit = rapid.SampledFrom([]int{0, 0, 1, 3, 20}).Draw(t, "limit")
	if q.view.reduce != "" && rapid.Bool().Draw(t, "reduce") {
		q.Reduce = true
		q.GroupLevel = rapid.SampledFrom([]int{view.GroupExact, 0, 1, 2, 3}).Draw(t, "group level")
	} else {
		q.IncludeDocs = rapid.IntRange(0, 3).Draw(t, "include docs") == 0
	}
	return q
}

// TestAgainstModel does random things with documents and indexes; every answer
// must be that of the model.
func TestAgainstModel(t *testing.T) {
	var defs []*view.Definition
	for _, options := range []string{``, `"local_seq":true`} {
		d, err := view.Parse(modelDesign(options), false)
		if err != nil {
			t.Fatal(err)
		}
		defs = append(defs, d)
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, rapid.IntRange(1, 3).Draw(rt, "copies"))
		defer func() { w.stop() }()
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		actions := w.actions(rng, defs)
		names := slices.Sorted(maps.Keys(actions))
		for range rapid.IntRange(1, 15).Draw(rt, "actions") {
			actions[rapid.SampledFrom(names).Draw(rt, "action")](rt)
		}
	})
}

// TestLargeAgainstModel has so many documents that the aggregates are made at
// the end of a build, and have several levels; a power cut comes in between.
func TestLargeAgainstModel(t *testing.T) {
	d, err := view.Parse(modelDesign(``), false)
	if err != nil {
		t.Fatal(err)
	}
	defs := []*view.Definition{d}
	seed := rand.Int()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	w := newWorld(t, 1)
	defer func() { w.stop() }()
	write := func(from, to int) {
		var edits []shard.Edit
		for i := from; i < to; i++ {
			id := fmt.Sprintf("d%02d-%d", i%30, i)
			edits = append(edits, shard.Edit{ID: id, Parent: w.revOf(id), Body: rapid.Custom(smallBody).Example(seed + i)})
		}
		w.edit(true, edits...)
	}
	for i := 0; i < 5000; i += 500 {
		write(i, i+500)
	}
	question := rapid.Custom(func(t *rapid.T) *question { return ask(t, defs) })
	for _, ops := range []int64{300, 1000, 1 << 30} {
		w.crash(rng, ops, func() {
			_, _, err := w.answers(question.Example(seed))
			w.must(err)
		})
	}
	for i := range 40 {
		if i%10 == 9 {
			write(i*100, i*100+i)
		}
		w.compare(question.Example(seed + i))
	}
}

// smallBody draws the body of one document of many.
func smallBody(t *rapid.T) []byte {
	keys := rapid.SliceOfN(rapid.SampledFrom(modelKeys()), 0, 2).Draw(t, "keys")
	return canonical(t, fmt.Appendf(nil, `{"g":%d,"keys":[%d,%s],"n":%d,"v":null}`, rapid.IntRange(0, 3).Draw(t, "g"),
		rapid.IntRange(0, 5000).Draw(t, "own"), strings.Join(append(keys, "0"), ","), rapid.IntRange(0, 9).Draw(t, "n")))
}

func (w *world) actions(rng *rand.Rand, defs []*view.Definition) map[string]func(*rapid.T) {
	query := func(t *rapid.T) { w.compare(ask(t, defs)) }
	build := func(t *rapid.T) func() {
		q := ask(t, defs)
		return func() {
			_, _, err := w.answers(q)
			w.must(err)
		}
	}
	write := func(t *rapid.T) {
		var edits []shard.Edit
		for _, id := range rapid.SliceOfNDistinct(rapid.Custom(docID), 1, 15, rapid.ID).Draw(t, "ids") {
			edits = append(edits, shard.Edit{ID: id, Parent: w.revOf(id), Body: body(t)})
		}
		w.edit(true, edits...)
	}
	return map[string]func(*rapid.T){
		"query":   query,
		"query 2": query,
		"query 3": query,
		"write":   write,
		"write 2": write,
		"delete": func(t *rapid.T) {
			id := docID(t)
			w.edit(true, shard.Edit{ID: id, Parent: w.revOf(id), Deleted: true, Body: []byte("{}")})
		},
		"conflict": func(t *rapid.T) {
			id := docID(t)
			rev := doc.Path{Start: 1, IDs: []string{rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "rev")}}
			w.edit(false, shard.Edit{ID: id, Path: rev, Deleted: rapid.IntRange(0, 4).Draw(t, "deleted") == 0, Body: body(t)})
		},
		"purge": func(t *rapid.T) {
			id := docID(t)
			if rev := w.revOf(id); !rev.IsZero() {
				w.docs = nil
				_, err := w.shards.Purge(context.Background(), w.copies[w.copyOf(id)], []shard.PurgeItem{{ID: id, Revs: []doc.Rev{rev}}})
				w.must(err)
			}
		},
		"lazy": func(t *rapid.T) {
			q := ask(t, defs)
			q.Update = rapid.SampledFrom([]view.Update{view.UpdateAfter, view.UpdateNever}).Draw(t, "update")
			_, _, err := w.answers(q)
			w.must(err)
		},
		"restart": func(*rapid.T) {
			w.stop()
			w.open()
		},
		"crash": func(t *rapid.T) {
			w.crash(rng, rapid.Int64Range(1, 200).Draw(t, "calls"), build(t))
		},
		"compact": func(t *rapid.T) {
			d := defs[rapid.IntRange(0, len(defs)-1).Draw(t, "definition")]
			for _, name := range w.copies {
				w.must(settled(func() error { return w.views.Compact(context.Background(), name, d.Text) }))
			}
		},
		"clean up": func(t *rapid.T) {
			keep := defs[rapid.IntRange(0, len(defs)-1).Draw(t, "keep")].Signature
			for _, name := range w.copies {
				w.must(w.indexes.Cleanup(context.Background(), name, index.View, []string{keep}))
			}
		},
	}
}
