package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// selectorModel is a database of a node and what queries by selectors find in it. It shares
// no code with the node: a condition is a function of Go beside its text, numbers are
// fractions of big numbers.
type selectorModel struct {
	t    *testing.T
	h    *testNode
	rng  *rand.Rand
	name string
	docs map[string]any // selectorObject, by id
	revs map[string]string
	text bool // there is an index of full text
	huge bool // there are integers beyond the doubles, which such an index does not hold
	json []string
}

// selectorNumber is a number; whole are those without a fraction in their text.
type selectorNumber struct {
	text  string
	value *big.Rat
	whole bool
}

type selectorMember struct {
	name  string
	value any
}

// selectorObject is an object, its members in order.
type selectorObject []selectorMember

// TestSelectorsAgainstModel asks a node for what random selectors find, with and without
// indexes, and compares each answer with that of a model.
func TestSelectorsAgainstModel(t *testing.T) {
	modelRounds(t, "/found", func(h *testNode, rng *rand.Rand, name string) (questions int) {
		m := &selectorModel{t: t, h: h, rng: rng, docs: map[string]any{}, revs: map[string]string{}, name: name}
		m.huge = m.rng.IntN(2) == 0
		h.want("PUT", fmt.Sprintf("%s?q=%d", m.name, 1+m.rng.IntN(3)), "", "201")
		for range 2 + m.rng.IntN(4) {
			m.edit()
			m.index()
			for range 15 {
				m.ask()
				questions++
			}
		}
		return questions
	})
}

func (m *selectorModel) pick(list ...string) string { return list[m.rng.IntN(len(list))] }

func (m *selectorModel) field() string { return m.pick("a", "b", "c", "s", "s.a", "l", "l.0") }

// number draws a number, often one of several that have the same double.
func (m *selectorModel) number() selectorNumber {
	text := m.pick("0", "-0.0", "1", "1.0", "2", "-3", "2.5", "10", "9007199254740991", "9007199254740992", "9007199254740993", "9007199254740992.0",
		"-9007199254740993", "1895131128281567232", "1895131128281567233", "18446744073709551615", "18446744073709551616", "18446744073709551617",
		"1.8446744073709552e19", "1e23", "99999999999999991611392", "100000000000000000000000", "1.7976931348623157e308")
	if m.huge && m.rng.IntN(12) == 0 {
		text = "1" + strings.Repeat("0", 400)
	}
	if v, ok := new(big.Int).SetString(text, 10); ok {
		return selectorNumber{text, new(big.Rat).SetInt(v), true}
	}
	return selectorNumber{text, new(big.Rat).SetFloat64(double(text)), false}
}

// string draws a string of characters whose order is known.
func (m *selectorModel) string() string {
	var b strings.Builder
	for range m.rng.IntN(3) {
		b.WriteString(m.pick("a", "b", "c", "z", "\U0001F600", "\U0001F601", "1", "\n"))
	}
	return b.String()
}

func (m *selectorModel) value(depth int) any {
	switch k := m.rng.IntN(12); {
	case k == 0:
		return nil
	case k == 1:
		return m.rng.IntN(2) == 0
	case k < 6 || depth == 0 && k < 9:
		return m.number()
	case k < 8 || depth == 0:
		return m.string()
	case k < 10:
		return m.list(depth - 1)
	default:
		o := selectorObject{}
		for _, name := range []string{"a", "b"}[:m.rng.IntN(3)] {
			o = append(o, selectorMember{name, m.value(depth - 1)})
		}
		return o
	}
}

func (m *selectorModel) list(depth int) []any {
	out := []any{}
	for range m.rng.IntN(4) {
		out = append(out, m.value(depth))
	}
	return out
}

// selectorText is a value as JSON.
func selectorText(v any) string {
	switch v := v.(type) {
	case selectorNumber:
		return v.text
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = selectorText(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case selectorObject:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = strconv.Quote(v[i].name) + ":" + selectorText(v[i].value)
		}
		return "{" + strings.Join(parts, ",") + "}"
	default:
		text, _ := json.Marshal(v)
		return string(text)
	}
}

func selectorType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case selectorNumber:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// order is the order of values.
func order(a, b any) int {
	types := []string{"null", "boolean", "number", "string", "array", "object"}
	if c := cmp.Compare(slices.Index(types, selectorType(a)), slices.Index(types, selectorType(b))); c != 0 {
		return c
	}
	switch x := a.(type) {
	case bool:
		return cmp.Compare(truth(x), truth(b.(bool)))
	case selectorNumber:
		return x.value.Cmp(b.(selectorNumber).value)
	case string:
		return compareKeys(x, b)
	case []any:
		return slices.CompareFunc(x, b.([]any), order)
	case selectorObject:
		return slices.CompareFunc(x, b.(selectorObject), func(m, n selectorMember) int {
			return cmp.Or(strings.Compare(m.name, n.name), order(m.value, n.value))
		})
	}
	return 0
}

// identical is equality where 1 is not 1.0.
func identical(a, b any) bool {
	if x, ok := a.(selectorNumber); ok {
		y, ok := b.(selectorNumber)
		return ok && x.whole == y.whole && x.value.Cmp(y.value) == 0
	}
	if x, ok := a.([]any); ok {
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, identical)
	}
	if x, ok := a.(selectorObject); ok {
		y, ok := b.(selectorObject)
		return ok && slices.EqualFunc(x, y, func(m, n selectorMember) bool { return m.name == n.name && identical(m.value, n.value) })
	}
	return order(a, b) == 0
}

// follow returns the value at a path; missing says that it is only not there.
func (m *selectorModel) follow(v any, path string) (at any, ok, missing bool) {
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case selectorObject:
			i := slices.IndexFunc(x, func(one selectorMember) bool { return one.name == name })
			if i < 0 {
				return nil, false, true
			}
			v = x[i].value
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(x) {
				return nil, false, false
			}
			v = x[i]
		default:
			return nil, false, false
		}
	}
	return v, true, false
}

// edit changes some documents.
func (m *selectorModel) edit() {
	var texts, ids []string
	for range 5 + m.rng.IntN(30) {
		id := fmt.Sprintf("d%02d", m.rng.IntN(50))
		if slices.Contains(ids, id) {
			continue
		}
		ids = append(ids, id)
		own := selectorObject{{"_id", id}}
		if m.revs[id] != "" {
			own = append(own, selectorMember{"_rev", m.revs[id]})
		}
		o := selectorObject{}
		for _, name := range []string{"a", "b", "c", "s", "l"} {
			switch k := m.rng.IntN(6); {
			case k == 0:
			case name == "l" && k < 5:
				o = append(o, selectorMember{name, m.list(1)})
			default:
				o = append(o, selectorMember{name, m.value(2)})
			}
		}
		m.docs[id] = o
		texts = append(texts, selectorText(append(own, o...)))
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
		m.revs[s.ID] = s.Rev
	}
}

// index makes an index, or none.
func (m *selectorModel) index() {
	switch k := m.rng.IntN(4); {
	case k == 0 && !m.text && !m.huge:
		m.text = true
		m.h.want("POST", m.name+"/_index", `{"type":"text","ddoc":"t","name":"t","index":{}}`, "200")
	case k < 3:
		field := m.pick("a", "b", "c", "s.a")
		fields := `"` + field + `"`
		if m.rng.IntN(2) == 0 {
			fields += `,"l"`
		} else {
			m.json = append(m.json, field)
		}
		m.h.want("POST", m.name+"/_index", `{"index":{"fields":[`+fields+`]}}`, "200")
	}
}

// found is an answer of _find.
type found struct {
	Docs []struct {
		ID string `json:"_id"`
	}
	Bookmark string
}

// ask asks a question at once and page by page, and compares.
func (m *selectorModel) ask() {
	sel := m.selector(3)
	typed, sort, desc, rest := false, "", m.rng.IntN(2) == 0, ""
	switch k := m.rng.IntN(4); {
	case k == 0 && m.text:
		typed, rest = true, `,"use_index":"t","allow_fallback":false`
	case k == 1 && len(m.json) > 0:
		sort = m.pick(m.json...)
		rest = fmt.Sprintf(`,"sort":[{%q:%q}]`, sort, map[bool]string{true: "desc", false: "asc"}[desc])
	}
	want := map[string]bool{}
	for id, doc := range m.docs {
		_, there, _ := m.follow(doc, sort)
		if sel.is(doc, typed) && (sort == "" || there) {
			want[id] = true
		}
	}
	if half, ok := halved(m.rng, sel.text); ok {
		m.h.want("POST", m.name+m.pick("/_explain", "/_find"), `{"selector":`+half+rest+`}`, "400")
	}
	sel.text = spelled(m.rng, sel.text)
	var explained struct{ Index struct{ Type string } }
	if status, body, _ := strings.Cut(m.h.ask("POST", m.name+"/_explain", `{"selector":`+sel.text+rest+`}`), " "); status != "200" || json.Unmarshal([]byte(body), &explained) != nil {
		m.t.Errorf("%s%s: %s %s", sel.text, rest, status, body)
		return
	}
	if !typed && explained.Index.Type == "text" { // the planner has chosen it
		maps.DeleteFunc(want, func(id string, _ bool) bool { return !sel.is(m.docs[id], true) })
	}
	question := `{"selector":` + sel.text + rest + `,`
	got := m.pages(question, 0, "1000")
	m.compare(question, slices.Clone(got), slices.Sorted(maps.Keys(want)), sort, desc)
	skip := m.rng.IntN(4)
	if again := m.pages(question, skip, m.pick("3", "10", "100")); !slices.Equal(again, got[min(skip, len(got)):]) {
		m.t.Errorf("%s %s by pages after %d\n got %v\nwant %v", m.name, question, skip, again, got)
	}
}

// pages asks a question page by page, and skips what is found first.
func (m *selectorModel) pages(question string, skip int, limit string) (ids []string) {
	for bookmark := ""; ; skip = 0 {
		text := fmt.Sprintf(`%s"limit":%s,"skip":%d,"bookmark":%q}`, question, limit, skip, bookmark)
		status, body, _ := strings.Cut(m.h.ask("POST", m.name+"/_find", text), " ")
		var page found
		if err := json.Unmarshal([]byte(body), &page); err != nil || status != "200" {
			m.t.Errorf("%s: %s %s", text, status, body)
			return ids
		}
		if bookmark = page.Bookmark; len(page.Docs) == 0 {
			return ids
		}
		for _, d := range page.Docs {
			ids = append(ids, d.ID)
		}
	}
}

func (m *selectorModel) compare(question string, got, want []string, sort string, desc bool) {
	for i := 1; i < len(got) && sort != ""; i++ {
		a, _, _ := m.follow(m.docs[got[i-1]], sort)
		b, _, _ := m.follow(m.docs[got[i]], sort)
		if c := order(a, b); c > 0 && !desc || c < 0 && desc {
			m.t.Errorf("%s %s: %s before %s", m.name, question, selectorText(a), selectorText(b))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		m.t.Errorf("%s %s\n got %v\nwant %v", m.name, question, got, want)
		for _, id := range append(got, want...) {
			if slices.Contains(got, id) != slices.Contains(want, id) {
				m.t.Errorf("%s: %s", id, selectorText(m.docs[id]))
				return
			}
		}
	}
}
