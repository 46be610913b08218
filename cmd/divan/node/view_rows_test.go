package node

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// rowsModel is a database of a node and what views of it should hold. It shares no code
// with the node: keys are values of Go with an order of their own, sums are big numbers.
type rowsModel struct {
	t    *testing.T
	h    *testNode
	rng  *rand.Rand
	docs map[string]*rowsDoc
	name string
}

// rowsDoc is a document: its text, and numbers and keys that its rows are made of.
type rowsDoc struct {
	rev  string
	text string // with characters beyond 16 bits, which the map function cuts
	cut  int    // after so many units
	n    string // an integer
	keys []any  // nil, bool, float64, string, []any or rowsObject
}

// rowsObject is an object with one member.
type rowsObject struct {
	name  string
	value any
}

// rowsRow is a row of a view.
type rowsRow struct {
	id    string
	key   any
	value *big.Int // of rows of n; nil: the cut text
	text  string
}

const rowsDesign = `{"views":{
	"n":{"map":"function (doc) { doc.keys.forEach(function (k) { emit(k, doc.n); }); }"},
	"sum":{"map":"function (doc) { doc.keys.forEach(function (k) { emit(k, doc.n); }); }","reduce":"_sum"},
	"count":{"map":"function (doc) { doc.keys.forEach(function (k) { emit(k, doc.n); }); }","reduce":"_count"},
	"stats":{"map":"function (doc) { doc.keys.forEach(function (k) { emit(k, doc.n); }); }","reduce":"_stats"},
	"cut":{"map":"function (doc) { emit(doc.t.substring(0, doc.c), doc.t.substring(doc.c)); emit([doc.t.substring(0, doc.c), doc.c], null); }","reduce":"_count"}}}`

// TestViewRowsAgainstModel asks a node for views of random documents, with random
// parameters, and compares each answer with that of a model.
func TestViewRowsAgainstModel(t *testing.T) {
	modelRounds(t, "/rows", func(h *testNode, rng *rand.Rand, name string) (questions int) {
		m := &rowsModel{t: t, h: h, rng: rng, docs: map[string]*rowsDoc{}, name: name}
		h.want("PUT", fmt.Sprintf("%s?q=%d", m.name, 1+m.rng.IntN(4)), "", "201")
		h.want("PUT", m.name+"/_design/d", rowsDesign, "201")
		for range 3 + m.rng.IntN(10) {
			m.edit()
			for range 8 {
				m.ask()
				questions++
			}
		}
		return questions
	})
}

// rowsIntegers are those that rows have; JavaScript has doubles.
func rowsIntegers() []string {
	return []string{"0", "1", "-1", "7", "1000000", "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740995", "123456789012345678", "18446744073709551616"}
}

func (m *rowsModel) pick(list []string) string { return list[m.rng.IntN(len(list))] }

// double is what JavaScript makes of a number.
func double(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

// text draws a string of characters whose order is known.
func (m *rowsModel) text() string {
	var b strings.Builder
	for range m.rng.IntN(4) {
		b.WriteString(m.pick([]string{"a", "b", "c", "z", "\U0001F600", "\U0001F601", "\uFFFD", "1"}))
	}
	return b.String()
}

// key draws a key.
func (m *rowsModel) key(depth int) any {
	switch k := m.rng.IntN(10); {
	case k == 0:
		return nil
	case k == 1:
		return m.rng.IntN(2) == 0
	case k < 5:
		return double(m.pick(append(rowsIntegers(), "0.5", "-2.25", "1e300")))
	case k < 7 || depth == 0:
		return m.text()
	case k < 9:
		list := []any{}
		for range m.rng.IntN(4) {
			list = append(list, m.key(depth-1))
		}
		return list
	default:
		return rowsObject{m.pick([]string{"a", "b"}), m.key(depth - 1)}
	}
}

// jsonOf is a key as a client writes it; it may spell a number otherwise.
func jsonOf(key any) string {
	switch k := key.(type) {
	case rowsObject:
		return "{" + strconv.Quote(k.name) + ":" + jsonOf(k.value) + "}"
	case []any:
		parts := make([]string, len(k))
		for i := range k {
			parts[i] = jsonOf(k[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case float64:
		if math.Abs(k) >= 1e21 { // as JavaScript writes it: an integer of that text is another number
			return strconv.FormatFloat(k, 'e', -1, 64)
		}
		return strconv.FormatFloat(k, 'f', -1, 64)
	default:
		text, _ := json.Marshal(k)
		return string(text)
	}
}

// compareKeys is the order of keys.
func compareKeys(a, b any) int {
	if c := cmp.Compare(kindOfKey(a), kindOfKey(b)); c != 0 {
		return c
	}
	switch x := a.(type) {
	case bool:
		return cmp.Compare(truth(x), truth(b.(bool)))
	case float64:
		return cmp.Compare(x, b.(float64))
	case string:
		return slices.CompareFunc([]rune(x), []rune(b.(string)), func(r, s rune) int { return cmp.Compare(rank(r), rank(s)) })
	case []any:
		return slices.CompareFunc(x, b.([]any), compareKeys)
	case rowsObject:
		y := b.(rowsObject)
		return cmp.Or(strings.Compare(x.name, y.name), compareKeys(x.value, y.value))
	}
	return 0
}

func kindOfKey(k any) int {
	switch k.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case float64:
		return 2
	case string:
		return 3
	case []any:
		return 4
	default:
		return 5
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rank orders the characters that models draw: symbols, digits, letters, U+FFFD.
func rank(r rune) int {
	return strings.IndexRune("\n\U0001F600\U0001F6011abcz\uFFFD", r)
}

// substring is that of JavaScript; half a character is U+FFFD.
func substring(s string, from, to int) string {
	units := utf16.Encode([]rune(s))
	return string(utf16.Decode(units[min(from, len(units)):min(to, len(units))]))
}

// edit changes some documents.
func (m *rowsModel) edit() {
	var texts, ids []string
	for range 1 + m.rng.IntN(20) {
		id := fmt.Sprintf("d%02d", m.rng.IntN(40))
		if slices.Contains(ids, id) {
			continue
		}
		ids = append(ids, id)
		rev := ""
		if d := m.docs[id]; d != nil {
			rev = `,"_rev":` + strconv.Quote(d.rev)
		}
		if rev != "" && m.rng.IntN(4) == 0 {
			delete(m.docs, id)
			texts = append(texts, fmt.Sprintf(`{"_id":%q%s,"_deleted":true}`, id, rev))
			continue
		}
		d := &rowsDoc{text: m.text() + m.text(), cut: m.rng.IntN(6), n: m.pick(rowsIntegers())}
		keys := []any{}
		for range m.rng.IntN(5) {
			keys = append(keys, m.key(2))
		}
		d.keys, m.docs[id] = keys, d
		text, _ := json.Marshal(d.text)
		texts = append(texts, fmt.Sprintf(`{"_id":%q%s,"t":%s,"c":%d,"n":%s,"keys":%s}`, id, rev, text, d.cut, d.n, jsonOf(keys)))
	}
	edits := `{"docs":[` + strings.Join(texts, ",") + `]}`
	if half, ok := halved(m.rng, edits); ok {
		m.h.want("POST", m.name+"/_bulk_docs", half, "400")
	}
	status, body, _ := strings.Cut(m.h.ask("POST", m.name+"/_bulk_docs", spelled(m.rng, edits)), " ")
	var saved []struct{ ID, Rev string }
	if err := json.Unmarshal([]byte(body), &saved); err != nil || status != "201" {
		m.t.Fatalf("%s %s: %v", status, body, err)
	}
	for _, s := range saved {
		if d := m.docs[s.ID]; d != nil {
			d.rev = s.Rev
		}
	}
}

// rows are those of a view, in order.
func (m *rowsModel) rows(view string) (out []rowsRow) {
	for id, d := range m.docs {
		if view == "cut" {
			head := substring(d.text, 0, d.cut)
			out = append(out, rowsRow{id: id, key: head, text: strconv.Quote(substring(d.text, d.cut, len(d.text)))}, rowsRow{id: id, key: []any{head, float64(d.cut)}, text: "null"})
			continue
		}
		n, _ := new(big.Int).SetString(strconv.FormatFloat(double(d.n), 'f', -1, 64), 10) // as JavaScript prints it
		for _, k := range d.keys {
			out = append(out, rowsRow{id: id, key: k, value: n})
		}
	}
	slices.SortStableFunc(out, func(a, b rowsRow) int { return cmp.Or(compareKeys(a.key, b.key), strings.Compare(a.id, b.id)) })
	return out
}

// rowsQuestion is one query.
type rowsQuestion struct {
	view               string
	params             url.Values
	start, end         *any
	startID, endID     string
	exclusive, desc    bool
	keys               []any // nil: not asked for
	skip, limit, level int   // level -1: rows; 0: all; 99: each key
	docs, sequence     bool
}

// draw draws a question.
func (m *rowsModel) draw() *rowsQuestion {
	q := &rowsQuestion{view: m.pick([]string{"n", "sum", "count", "stats", "cut"}), params: url.Values{}, limit: -1, level: -1}
	if q.view != "n" {
		if m.rng.IntN(3) > 0 {
			q.level = []int{0, 1, 2, 99}[m.rng.IntN(4)]
		} else {
			q.params.Set("reduce", "false")
		}
	}
	existing := m.rows(q.view)
	key := func(name string) *any {
		k := m.key(2)
		if len(existing) > 0 && m.rng.IntN(2) == 0 {
			k = existing[m.rng.IntN(len(existing))].key
		}
		q.params.Set(name, jsonOf(k))
		return &k
	}
	m.drawRange(q, key)
	if q.desc = m.rng.IntN(3) == 0; q.desc {
		q.params.Set("descending", "true")
	}
	if m.rng.IntN(3) == 0 {
		q.skip = m.rng.IntN(6)
		q.params.Set("skip", strconv.Itoa(q.skip))
	}
	if m.rng.IntN(3) == 0 {
		q.limit = m.rng.IntN(8)
		q.params.Set("limit", strconv.Itoa(q.limit))
	}
	switch {
	case q.keys != nil && q.level >= 0:
		q.level = 99
		fallthrough
	case q.level == 99:
		q.params.Set("group", "true")
	case q.level > 0:
		q.params.Set("group_level", strconv.Itoa(q.level))
	case q.level < 0 && m.rng.IntN(4) == 0:
		q.docs = true
		q.params.Set("include_docs", "true")
	}
	if q.sequence = m.rng.IntN(6) == 0; q.sequence {
		q.params.Set("update_seq", "true")
	}
	return q
}

func (m *rowsModel) drawRange(q *rowsQuestion, key func(name string) *any) {
	switch m.rng.IntN(5) {
	case 0:
	case 1:
		q.start = key("key")
		q.end = q.start
	case 2:
		q.keys = []any{}
		var parts []string
		for range m.rng.IntN(5) {
			q.keys = append(q.keys, *key("keys"))
			parts = append(parts, jsonOf(q.keys[len(q.keys)-1]))
		}
		q.params.Set("keys", "["+strings.Join(parts, ",")+"]")
	default:
		if m.rng.IntN(4) > 0 {
			q.start = key("startkey")
			if m.rng.IntN(3) == 0 {
				q.startID = fmt.Sprintf("d%02d", m.rng.IntN(40))
				q.params.Set("startkey_docid", q.startID)
			}
		}
		if m.rng.IntN(4) > 0 {
			q.end = key("endkey")
			if m.rng.IntN(3) == 0 {
				q.endID = fmt.Sprintf("d%02d", m.rng.IntN(40))
				q.params.Set("endkey_docid", q.endID)
			}
		}
		if q.exclusive = m.rng.IntN(3) == 0; q.exclusive {
			q.params.Set("inclusive_end", "false")
		}
	}
}

// within reports whether a row lies between the start and the end.
func (q *rowsQuestion) within(r *rowsRow) bool {
	side := func(key any, id string) int {
		c := compareKeys(r.key, key)
		if c == 0 && id != "" {
			c = strings.Compare(r.id, id)
		}
		if q.desc {
			return -c
		}
		return c
	}
	if q.start != nil && side(*q.start, q.startID) < 0 {
		return false
	}
	if q.end == nil {
		return true
	}
	c := side(*q.end, q.endID)
	return c < 0 || c == 0 && !q.exclusive
}

// selected are the rows that the question is about, in the order of the answer.
func (q *rowsQuestion) selected(all []rowsRow) (out [][]rowsRow) {
	if q.desc {
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b rowsRow) int { return -cmp.Or(compareKeys(a.key, b.key), strings.Compare(a.id, b.id)) })
	}
	if q.keys == nil {
		return [][]rowsRow{slices.DeleteFunc(slices.Clone(all), func(r rowsRow) bool { return !q.within(&r) })}
	}
	keys := slices.Clone(q.keys)
	if q.desc && q.level < 0 {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		out = append(out, slices.DeleteFunc(slices.Clone(all), func(r rowsRow) bool { return compareKeys(r.key, k) != 0 }))
	}
	return out
}

// expected are the rows of the answer as texts.
func (m *rowsModel) expected(q *rowsQuestion) (out []string) {
	for _, rows := range q.selected(m.rows(q.view)) {
		if q.level < 0 {
			for i := range rows {
				out = append(out, m.rowText(q, &rows[i]))
			}
			continue
		}
		for len(rows) > 0 {
			key, n := q.group(rows[0].key), 1
			for n < len(rows) && compareKeys(q.group(rows[n].key), key) == 0 {
				n++
			}
			out = append(out, jsonOf(key)+" "+reduced(q.view, rows[:n]))
			rows = rows[n:]
		}
	}
	out = out[min(q.skip, len(out)):]
	if q.limit >= 0 {
		out = out[:min(q.limit, len(out))]
	}
	return out
}

func (q *rowsQuestion) group(key any) any {
	if q.level == 0 {
		return nil
	}
	if list, ok := key.([]any); ok && len(list) > q.level {
		return list[:q.level]
	}
	return key
}

func (m *rowsModel) rowText(q *rowsQuestion, r *rowsRow) string {
	value := r.text
	if r.value != nil {
		value = r.value.String()
	}
	text := r.id + " " + jsonOf(r.key) + " " + value
	if q.docs {
		text += " " + m.docs[r.id].rev
	}
	return text
}

// reduced is the reduction of rows.
func reduced(view string, rows []rowsRow) string {
	if view == "count" || view == "cut" {
		return strconv.Itoa(len(rows))
	}
	sum, squares, least, most := new(big.Int), new(big.Int), rows[0].value, rows[0].value
	for i := range rows {
		v := rows[i].value
		sum.Add(sum, v)
		squares.Add(squares, new(big.Int).Mul(v, v))
		if v.Cmp(least) < 0 {
			least = v
		}
		if v.Cmp(most) > 0 {
			most = v
		}
	}
	if view == "sum" {
		return sum.String()
	}
	return fmt.Sprint(sum, len(rows), least, most, squares)
}

// ask asks a question, by GET, by POST or as one of several, and compares.
func (m *rowsModel) ask() {
	q := m.draw()
	path := m.name + "/_design/d/_view/" + q.view
	if half, ok := halved(m.rng, q.object()); ok {
		m.h.want("POST", path, half, "400")
	}
	for _, name := range slices.Sorted(maps.Keys(q.params)) {
		q.params.Set(name, spelled(m.rng, q.params.Get(name)))
	}
	var answer string
	switch m.rng.IntN(3) {
	case 0:
		answer = m.h.ask("GET", path+"?"+q.params.Encode(), "")
	case 1:
		answer = m.h.ask("POST", path, q.object())
	default:
		answer = m.h.ask("POST", path+"/queries", `{"queries":[`+q.object()+`]}`)
		answer = strings.Replace(strings.TrimSuffix(strings.TrimSpace(answer), "]}"), `{"results":[`, "", 1)
	}
	status, body, _ := strings.Cut(answer, " ")
	got, err := readRows(q, strings.TrimSpace(body))
	if want := m.expected(q); err != nil || status != "200" || !slices.Equal(got, want) {
		m.t.Errorf("%s %s %s: %v\n got %q\nwant %q", path, q.params.Encode(), status, err, got, want)
	}
}

func (q *rowsQuestion) object() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(q.params)) {
		value := q.params.Get(name)
		if strings.HasSuffix(name, "docid") {
			value = strconv.Quote(value)
		}
		parts = append(parts, strconv.Quote(name)+":"+value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// readRows reads the rows of an answer, as rowText and expected write them.
func readRows(q *rowsQuestion, body string) (out []string, err error) {
	var answer struct {
		Total     *int            `json:"total_rows"`
		UpdateSeq json.RawMessage `json:"update_seq"`
		Rows      []struct {
			ID         string
			Key, Value json.RawMessage
			Doc        *struct {
				Rev string `json:"_rev"`
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", body, err)
	}
	if (answer.Total != nil) != (q.level < 0) || q.level < 0 && (answer.UpdateSeq != nil) != q.sequence {
		return nil, fmt.Errorf("the head of %s", body)
	}
	for _, r := range answer.Rows {
		key, err := readKey(r.Key)
		if err != nil {
			return nil, err
		}
		text := jsonOf(key) + " " + readValue(r.Value)
		if q.level < 0 {
			text = r.ID + " " + text
		}
		if r.Doc != nil {
			text += " " + r.Doc.Rev
		}
		out = append(out, text)
	}
	return out, nil
}

// readKey reads the JSON of a key.
func readKey(text json.RawMessage) (any, error) {
	switch text[0] {
	case '[':
		var parts []json.RawMessage
		err := json.Unmarshal(text, &parts)
		list := []any{}
		for _, p := range parts {
			k, wrong := readKey(p)
			list, err = append(list, k), cmp.Or(err, wrong)
		}
		return list, err
	case '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil || len(members) != 1 {
			return nil, fmt.Errorf("the key %s: %w", text, err)
		}
		for name, v := range members {
			value, err := readKey(v)
			return rowsObject{name, value}, err
		}
	}
	var key any
	err := json.Unmarshal(text, &key)
	return key, err
}

// readValue is a value as the model writes it: the five figures of _stats in a row, numbers
// without a fraction.
func readValue(text json.RawMessage) string {
	var stats struct{ Sum, Count, Min, Max, Sumsqr json.Number }
	if bytes.HasPrefix(text, []byte("{")) && json.Unmarshal(text, &stats) == nil {
		return fmt.Sprint(whole(stats.Sum), " ", whole(stats.Count), " ", whole(stats.Min), " ", whole(stats.Max), " ", whole(stats.Sumsqr))
	}
	if text[0] == '"' {
		var s string
		_ = json.Unmarshal(text, &s)
		return strconv.Quote(s)
	}
	return whole(json.Number(text))
}

// whole is the text of a number that has no fraction.
func whole(n json.Number) string {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() {
		return string(n)
	}
	return r.Num().String()
}
