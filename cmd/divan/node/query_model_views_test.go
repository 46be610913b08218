package node

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"divan/shard/ring"
	"divan/shard/view/reduce"
	"divan/storage/collate"
)

// modelDesign is a design document with views.
type modelDesign struct {
	name        string
	partitioned bool
	views       []modelView
	alone       bool          // nothing but questions brings its index up to date
	held        []modelHolder // what the index held when a question has brought it up to date last; nil: not known
}

func (d *modelDesign) path() string { return "/_design/" + d.name + "/_view/" }

// modelHolder is a document of that time.
type modelHolder struct {
	id, rev string
	lost    []string // live leaves
	body    map[string]json.RawMessage
}

type modelView struct {
	name    string
	mapping modelMapping
	reduce  string
	raw     bool
}

// modelMapping is a map function, in both languages.
type modelMapping struct {
	source  string
	reduces []string // that take its values
	rows    func(d *modelHolder) []emitted
}

type emitted struct{ key, value string }

const (
	countInJS = `function (keys, values, rereduce) { return rereduce ? sum(values) : values.length; }`
	mostInJS  = `function (keys, values) { return Math.max.apply(null, values); }`
)

// or returns a member of a document, null when it is not there, as emit has it.
func (d *modelHolder) or(name string) string {
	if v := d.body[name]; v != nil {
		return string(v)
	}
	return "null"
}

func (d *modelHolder) list(name string) (out []string) {
	var items []json.RawMessage
	_ = json.Unmarshal(d.body[name], &items) // one that is not there has none
	for _, v := range items {
		out = append(out, string(v))
	}
	return out
}

func modelMappings() []modelMapping {
	keys := []string{"_count", "_approx_count_distinct", "_first", "_last", "_top_2", "_bottom_3", countInJS}
	numbers := append([]string{"_sum", "_stats", "_sum", "_stats", mostInJS}, keys...)
	return []modelMapping{
		{`function (doc) { emit(doc.k, doc.n); }`, numbers, func(d *modelHolder) []emitted {
			return []emitted{{d.or("k"), d.or("n")}}
		}},
		{`function (doc) { doc.ks.forEach(function (k) { emit(k, doc.n); }); }`, numbers, func(d *modelHolder) (out []emitted) {
			for _, k := range d.list("ks") { // one without throws
				out = append(out, emitted{k, d.or("n")})
			}
			return out
		}},
		{`function (doc) { emit([doc.g, doc.k], doc.v); if (doc.bad) { throw new Error('bad'); } emit(doc._id, doc._rev); }`, keys, func(d *modelHolder) []emitted {
			if d.body["bad"] != nil {
				return nil
			}
			return []emitted{{"[" + d.or("g") + "," + d.or("k") + "]", d.or("v")}, {strconv.Quote(d.id), strconv.Quote(d.rev)}}
		}},
		{`function (doc) { emit(doc.s, {_id: doc.link}); }`, []string{"_count"}, func(d *modelHolder) []emitted {
			if d.body["link"] == nil {
				return []emitted{{d.or("s"), "{}"}}
			}
			return []emitted{{d.or("s"), `{"_id":` + d.or("link") + "}"}}
		}},
		{`function (doc) { (doc.ks || []).forEach(function (k) { emit(doc.g, k); }); emit(doc.g, doc.n); }`, keys, func(d *modelHolder) (out []emitted) {
			for _, k := range d.list("ks") {
				out = append(out, emitted{d.or("g"), k})
			}
			return append(out, emitted{d.or("g"), d.or("n")})
		}},
		{`function (doc) { emit([doc.g, doc.s, doc.k], [doc.n, 1]); }`, []string{"_sum", "_stats", "_count"}, func(d *modelHolder) []emitted {
			return []emitted{{"[" + d.or("g") + "," + d.or("s") + "," + d.or("k") + "]", "[" + d.or("n") + ",1]"}}
		}},
		{`function (doc) { if (doc._conflicts) { emit(doc._conflicts, doc._rev); } }`, []string{"_count"}, func(d *modelHolder) []emitted {
			if len(d.lost) == 0 {
				return nil
			}
			return []emitted{{list(d.lost), strconv.Quote(d.rev)}}
		}},
		{`function (doc) { emit(doc.g, {a: doc.n, b: {c: 1}}); }`, []string{"_sum", "_count"}, func(d *modelHolder) []emitted {
			return []emitted{{d.or("g"), `{"a":` + d.or("n") + `,"b":{"c":1}}`}}
		}},
	}
}

// modelTexts are keys and values of all kinds, as JavaScript writes them.
func modelTexts() []string {
	return []string{
		`null`, `false`, `true`, `0`, `1`, `1.5`, `-7`, `2`, `3`, `10`, `""`, `"a"`, `"A"`, `"b"`, `"ab"`, `"é"`, `"e\u0301"`, `"zoo"`, `[]`, `["a"]`, `["a",1]`,
		`["a",{}]`, `[1,[2,null]]`, `{}`, `{"a":1}`, `{"a":1,"b":2}`, `{"b":0}`,
	}
}

// drawBody draws a document without its id and revision.
func drawBody(t *rapid.T, ids []string) string {
	text := func(name string) string { return rapid.SampledFrom(modelTexts()).Draw(t, name) }
	members := []string{
		fmt.Sprintf(`"n":%s`, rapid.SampledFrom([]string{"1", "2.5", "-3", "1000000", "0.25", "7"}).Draw(t, "n")),
		fmt.Sprintf(`"g":%d`, rapid.IntRange(0, 3).Draw(t, "g")),
	}
	some := func(odds int, name string, value func() string) {
		if rapid.IntRange(1, odds).Draw(t, name+"?") > 1 {
			members = append(members, fmt.Sprintf("%q:%s", name, value()))
		}
	}
	some(5, "k", func() string { return text("k") })
	some(4, "v", func() string { return text("v") })
	some(4, "s", func() string {
		return rapid.SampledFrom([]string{`"a"`, `"B"`, `"ab"`, `"é"`, `"z"`, `"a b"`}).Draw(t, "s")
	})
	some(3, "ks", func() string {
		return "[" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(modelTexts()), 0, 5).Draw(t, "ks"), ",") + "]"
	})
	some(2, "link", func() string { return fmt.Sprintf("%q", rapid.SampledFrom(ids).Draw(t, "link")) })
	some(3, "sub", func() string { return `{"a":` + text("sub.a") + `,"c":[1]}` })
	if rapid.IntRange(0, 7).Draw(t, "bad") == 0 {
		members = append(members, `"bad":true`)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// addViews saves another design document.
func (m *queryModel) addViews() {
	d := &modelDesign{name: fmt.Sprint("v", len(m.views)), alone: rapid.Bool().Draw(m.T, "alone")}
	d.partitioned = m.partitioned && rapid.IntRange(0, 2).Draw(m.T, "views of partitions") > 0
	texts := []string{}
	for i := range rapid.IntRange(1, 3).Draw(m.T, "views") {
		v := modelView{name: fmt.Sprint("w", i), mapping: pick(m.T, modelMappings(), "map"), raw: rapid.IntRange(0, 4).Draw(m.T, "raw") == 0}
		if rapid.IntRange(0, 3).Draw(m.T, "reduces") > 0 {
			v.reduce = rapid.SampledFrom(v.mapping.reduces).Draw(m.T, "reduce")
		}
		text, _ := json.Marshal(v.mapping.source)
		out := fmt.Sprintf(`%q:{"map":%s`, v.name, text)
		if v.reduce != "" {
			text, _ = json.Marshal(v.reduce)
			out += fmt.Sprintf(`,"reduce":%s`, text)
		}
		if v.raw {
			out += `,"options":{"collation":"raw"}`
		}
		d.views, texts = append(d.views, v), append(texts, out+"}")
	}
	// "lib" makes the index one of its own.
	m.must("PUT", "/db/_design/"+d.name, fmt.Sprintf(`{"autoupdate":%t,"options":{"partitioned":%t},"views":{"lib":{"of":%q},%s}}`,
		!d.alone, d.partitioned, d.name, strings.Join(texts, ",")), "201", "202")
	m.views = append(m.views, d)
}

// build asks for the first view of a design document.
func (m *queryModel) build(d *modelDesign) {
	path := "/db" + d.path() + d.views[0].name + "?limit=1"
	if d.partitioned {
		path = "/db/_partition/a" + d.path() + d.views[0].name + "?limit=1"
	}
	m.must("GET", path, "", "200")
}

// viewAnswer is what comes.
type viewAnswer struct {
	Total  *int `json:"total_rows"`
	Offset *int `json:"offset"`
	Rows   []viewRow
}

type viewRow struct {
	ID         string
	Key, Value json.RawMessage
	Doc        json.RawMessage

	sort   []byte // of the model: the key's, and the value's
	tie    []byte
	number int // of the key that was asked for, of several
}

func (m *queryModel) askView() {
	if len(m.views) == 0 {
		return
	}
	q := m.drawView(pick(m.T, m.views, "design"))
	var text string
	if rapid.Bool().Draw(m.T, "post") {
		_, text = m.must("POST", q.path(), q.object(), "200")
	} else {
		_, text = m.must("GET", q.path()+"?"+q.query(), "", "200")
	}
	var got viewAnswer
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		m.Fatalf("%s: %v", text, err)
	}
	m.compare(q, &got)
}

// askViews asks several questions in one request.
func (m *queryModel) askViews() {
	if len(m.views) == 0 {
		return
	}
	first := m.drawView(pick(m.T, m.views, "design"))
	questions, objects := []*viewQuestion{first}, []string{first.object()}
	for range rapid.IntRange(0, 2).Draw(m.T, "more") {
		q := m.drawView(first.design)
		if q.view.name == first.view.name && q.partition == first.partition {
			questions, objects = append(questions, q), append(objects, q.object())
		}
	}
	_, text := m.must("POST", first.path()+"/queries", `{"queries":[`+strings.Join(objects, ",")+`]}`, "200")
	var got struct{ Results []viewAnswer }
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Results) != len(questions) {
		m.Fatalf("%s: %v", text, err)
	}
	for i, q := range questions {
		m.compare(q, &got.Results[i])
	}
}

// compare fails unless the answer is that of the model.
func (m *queryModel) compare(q *viewQuestion, got *viewAnswer) {
	m.Helper()
	held := m.held(q)
	if held == nil {
		return
	}
	rows, total, offset := m.expectView(q, held)
	if q.reduces {
		rows = m.groups(q, rows)
	}
	if q.reduces || q.unsorted {
		if got.Total != nil || got.Offset != nil {
			m.Fatalf("%s %s: an answer with a number of rows", q.path(), q.object())
		}
	} else {
		offset = min(offset+q.skip, total)
		if got.Total == nil || got.Offset == nil || *got.Total != total || *got.Offset != offset {
			m.Fatalf("%s %s: %s rows, %s before, want %d and %d", q.path(), q.object(), number(got.Total), number(got.Offset), total, offset)
		}
	}
	rows = rows[min(q.skip, len(rows)):]
	if q.limit >= 0 {
		rows = rows[:min(q.limit, len(rows))]
	}
	if len(rows) != len(got.Rows) {
		m.Fatalf("%s %s of %s: %d rows, want %d:\n got %s\nwant %s", q.path(), q.object(), q.view.reduce, len(got.Rows), len(rows), show(got.Rows), show(rows))
	}
	for i := range rows {
		if why := m.differs(q, &got.Rows[i], &rows[i]); why != "" {
			m.Fatalf("%s %s of %s: %s of row %d:\n got %s\nwant %s", q.path(), q.object(), q.view.reduce, why, i, show(got.Rows[i:]), show(rows[i:]))
		}
	}
}

func number(n *int) string {
	if n == nil {
		return "no number of"
	}
	return strconv.Itoa(*n)
}

func show(rows []viewRow) string {
	var b strings.Builder
	for _, r := range rows[:min(len(rows), 8)] {
		fmt.Fprintf(&b, "%s %s %s %s, ", r.ID, r.Key, r.Value, r.Doc)
	}
	return b.String()
}

// held returns the documents that the answer reflects, nil when that is not known.
func (m *queryModel) held(q *viewQuestion) []modelHolder {
	if q.update == "true" {
		q.design.held = []modelHolder{}
		for _, d := range m.live() {
			h := modelHolder{id: d.id, rev: d.winner().rev(), lost: d.conflicts()}
			if err := json.Unmarshal([]byte(d.winner().body), &h.body); err != nil {
				m.Fatalf("%s: %v", d.winner().body, err)
			}
			q.design.held = append(q.design.held, h)
		}
		held := q.design.held
		if q.partition != "" || !q.design.alone { // other partitions are as they were, writes may be followed
			q.design.held = nil
		}
		return held
	}
	held := q.design.held
	if q.update == "lazy" {
		q.design.held = nil
	}
	return held
}

// expectView computes the rows of a question before skip and limit, in order.
func (m *queryModel) expectView(q *viewQuestion, held []modelHolder) (rows []viewRow, total, offset int) {
	var all []viewRow
	for i := range held {
		d := &held[i]
		if q.partition != "" && !strings.HasPrefix(d.id, q.partition+":") {
			continue
		}
		for _, e := range q.view.mapping.rows(d) {
			all = append(all, viewRow{
				ID: d.id, Key: json.RawMessage(e.key), Value: json.RawMessage(e.value), sort: m.sortKey(q.view.raw, e.key), tie: m.sortKey(true, e.value),
			})
		}
	}
	slices.SortStableFunc(all, q.compare)
	starts, ends := []string{q.start}, []string{q.end}
	if q.keys != nil {
		starts = slices.Clone(q.keys)
		if q.desc && !q.reduces { // groups come as the keys do
			slices.Reverse(starts)
		}
		ends = starts
	}
	first := make([]int, len(m.ring)) // by range of the ring: the key that its offset is that of
	for i := range first {
		first[i] = len(starts) - 1
	}
	behind := make([][]int, len(starts)) // by key: how many rows of each range of the ring come before it
	for i := range starts {
		behind[i] = make([]int, len(m.ring))
		for k := range all {
			shard := m.shardOf(all[k].ID)
			switch before, after := m.sides(q, &all[k], starts[i], ends[i]); {
			case before:
				behind[i][shard]++
			case !after:
				rows = append(rows, all[k])
				rows[len(rows)-1].number = i
				first[shard] = min(first[shard], i)
			}
		}
	}
	for shard, i := range first {
		if i >= 0 {
			offset += behind[i][shard]
		}
	}
	return rows, len(all), offset
}

// compare orders rows as an answer does: rows of one document under one key come by
// their values in both directions.
func (q *viewQuestion) compare(a, b viewRow) int {
	c := cmp.Or(bytes.Compare(a.sort, b.sort), strings.Compare(a.ID, b.ID))
	if q.desc {
		c = -c
	}
	return cmp.Or(c, bytes.Compare(a.tie, b.tie))
}

// shardOf returns the range of the ring that a document belongs to.
func (m *queryModel) shardOf(id string) int {
	hash := ring.Hash(id, m.partitioned)
	return slices.IndexFunc(m.ring, func(r ring.Range) bool { return r.Contains(hash) })
}

func (m *queryModel) sortKey(raw bool, key string) []byte {
	m.Helper()
	appendKey := collate.AppendKey
	if raw {
		appendKey = collate.AppendRawKey
	}
	out, err := appendKey(nil, []byte(key))
	if err != nil {
		m.Fatalf("key %s: %v", key, err)
	}
	return out
}

// sides reports whether a row comes before the start, and whether it comes behind the
// end.
func (m *queryModel) sides(q *viewQuestion, r *viewRow, start, end string) (before, behind bool) {
	side := func(key, id string) int {
		c := bytes.Compare(r.sort, m.sortKey(q.view.raw, key))
		if c == 0 && id != "" && q.keys == nil {
			c = strings.Compare(r.ID, id)
		}
		if q.desc {
			return -c
		}
		return c
	}
	if start != "" {
		before = side(start, q.startID) < 0
	}
	if end != "" {
		c := side(end, q.endID)
		behind = c > 0 || c == 0 && q.exclusive && q.keys == nil
	}
	return before, behind
}

// groups reduces rows.
func (m *queryModel) groups(q *viewQuestion, rows []viewRow) (out []viewRow) {
	of := func(r *viewRow) viewRow {
		key := string(r.Key)
		if list := []json.RawMessage(nil); q.level > 0 && json.Unmarshal(r.Key, &list) == nil && list != nil && len(list) > q.level {
			text, _ := json.Marshal(list[:q.level])
			key = string(text)
		} else if q.level == 0 {
			key = "null"
		}
		return viewRow{Key: json.RawMessage(key), sort: m.sortKey(q.view.raw, key)}
	}
	for len(rows) > 0 {
		g, n := of(&rows[0]), 1
		for n < len(rows) && rows[n].number == rows[0].number && (q.level == 0 || bytes.Equal(of(&rows[n]).sort, g.sort)) {
			n++
		}
		g.Value = m.reduce(q, rows[:n])
		out, rows = append(out, g), rows[n:]
	}
	return out
}

// reduce reduces the rows of a group.
func (m *queryModel) reduce(q *viewQuestion, rows []viewRow) json.RawMessage {
	switch q.view.reduce {
	case "_count", countInJS:
		return json.RawMessage(strconv.Itoa(len(rows)))
	case mostInJS:
		most := math.Inf(-1)
		for i := range rows {
			n, _ := strconv.ParseFloat(string(rows[i].Value), 64)
			most = max(most, n)
		}
		return json.RawMessage(strconv.FormatFloat(most, 'f', -1, 64))
	}
	f, err := reduce.Builtin(q.view.reduce)
	if err != nil {
		m.Fatalf("%v", err)
	}
	// A function sees rows in ascending order.
	rows = slices.SortedStableFunc(slices.Values(rows), (&viewQuestion{}).compare)
	in := make([]reduce.Row, len(rows))
	for i, r := range rows {
		in[i] = reduce.Row{Sort: r.sort, Key: r.Key, ID: r.ID, Value: r.Value}
	}
	state, err := f.Reduce(nil, in)
	if err == nil {
		state, err = f.Final(nil, state)
	}
	if err != nil {
		m.Fatalf("%v", err)
	}
	return state
}

// differs tells what is wrong with a row; empty: nothing.
func (m *queryModel) differs(q *viewQuestion, got, want *viewRow) string {
	switch {
	case got.ID != want.ID:
		return "id"
	case !bytes.Equal(m.sortKey(q.view.raw, string(got.Key)), want.sort):
		return "key"
	case !sameJSON(got.Value, want.Value):
		return "value"
	case q.docs && !sameJSON(got.Doc, m.docOf(q, want)):
		return "document (" + string(m.docOf(q, want)) + ")"
	}
	return ""
}

// docOf is the document of a row, or the one that its value names.
func (m *queryModel) docOf(q *viewQuestion, r *viewRow) json.RawMessage {
	var link struct {
		ID string `json:"_id"`
	}
	id, conflicts := r.ID, q.conflicts
	if json.Unmarshal(r.Value, &link) == nil && link.ID != "" {
		id, conflicts = link.ID, false
	}
	if d := m.docs[id]; d != nil && !d.winner().deleted {
		return json.RawMessage(d.text(d.lost(conflicts)))
	}
	return json.RawMessage("null")
}

// sameJSON reports whether two texts are the same value, in any order of the members.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
