package node

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// selectorTest is a condition on a value; typed: as an index of full text sees it.
type selectorTest func(v any, typed bool) bool

// selectorCondition is a condition, and what it becomes below a negation.
type selectorCondition struct {
	text     string
	is, isNo selectorTest
}

func inverted(test selectorTest) selectorTest {
	return func(v any, typed bool) bool { return !test(v, typed) }
}

// compares draws a comparison by order.
func (m *selectorModel) compares(arg any) selectorCondition {
	op := m.pick("$lt", "$lte", "$gt", "$gte")
	holds := func(no bool) selectorTest {
		return func(v any, typed bool) bool {
			if kind := selectorType(arg); typed && kind != selectorType(v) && (kind == "boolean" || kind == "number" || kind == "string") {
				return false
			}
			c := order(v, arg)
			return no != map[string]bool{"$lt": c < 0, "$lte": c <= 0, "$gt": c > 0, "$gte": c >= 0}[op]
		}
	}
	return selectorCondition{fmt.Sprintf("{%q:%s}", op, selectorText(arg)), holds(false), holds(true)}
}

// contains draws a condition on a list of values.
func (m *selectorModel) contains() selectorCondition {
	args := m.list(1)
	in := func(v any, _ bool) bool {
		values, ok := v.([]any)
		if !ok {
			values = []any{v}
		}
		return slices.ContainsFunc(values, func(one any) bool {
			return slices.ContainsFunc(args, func(arg any) bool { return order(one, arg) == 0 })
		})
	}
	all := func(v any, _ bool) bool {
		values, ok := v.([]any)
		if !ok || len(args) == 0 {
			return false
		}
		if list, ok := args[0].([]any); ok && len(args) == 1 && order(list, values) == 0 {
			return true
		}
		for _, arg := range args {
			if !slices.ContainsFunc(values, func(one any) bool { return identical(one, arg) }) {
				return false
			}
		}
		return true
	}
	switch m.rng.IntN(3) {
	case 0:
		return selectorCondition{`{"$in":` + selectorText(args) + `}`, in, inverted(in)}
	case 1:
		return selectorCondition{`{"$nin":` + selectorText(args) + `}`, inverted(in), in}
	default:
		return selectorCondition{`{"$all":` + selectorText(args) + `}`, all, inverted(all)}
	}
}

// condition draws a condition on a value; inner: one of an element.
func (m *selectorModel) condition(inner bool) selectorCondition {
	kinds := 12
	if inner {
		kinds = 10
	}
	arg := m.value(2)
	simple := func(text string, is selectorTest) selectorCondition {
		return selectorCondition{text, is, inverted(is)}
	}
	equal := func(v any, _ bool) bool { return order(v, arg) == 0 }
	switch m.rng.IntN(kinds) {
	case 0:
		return simple(`{"$eq":`+selectorText(arg)+`}`, equal)
	case 1:
		return selectorCondition{`{"$ne":` + selectorText(arg) + `}`, inverted(equal), equal}
	case 2, 3:
		return m.compares(arg)
	case 4, 5:
		return m.contains()
	case 6:
		kind := m.pick("null", "boolean", "number", "string", "array", "object")
		return simple(`{"$type":"`+kind+`"}`, func(v any, _ bool) bool { return selectorType(v) == kind })
	case 7:
		return m.remains()
	case 8:
		start := m.string()
		return simple(`{"$beginsWith":`+selectorText(start)+`}`, func(v any, _ bool) bool {
			s, ok := v.(string)
			return ok && strings.HasPrefix(s, start)
		})
	case 9:
		return m.matches()
	case 10:
		n := m.rng.IntN(4)
		return simple(fmt.Sprintf(`{"$size":%d}`, n), func(v any, _ bool) bool {
			list, ok := v.([]any)
			return ok && len(list) == n
		})
	default:
		return m.elements()
	}
}

// remains draws a condition on the remainder of integers, often that of a number that
// documents have.
func (m *selectorModel) remains() selectorCondition {
	divisor, remainder := big.NewInt(m.rng.Int64N(9)+2), big.NewInt(m.rng.Int64N(4)-1)
	if n := m.number(); n.whole && n.value.Sign() != 0 && m.rng.IntN(2) == 0 {
		divisor = n.value.Num()
	}
	if n := m.number(); n.whole && m.rng.IntN(2) == 0 {
		remainder = new(big.Int).Rem(n.value.Num(), divisor)
	}
	is := func(v any, _ bool) bool {
		n, ok := v.(selectorNumber)
		return ok && n.whole && new(big.Int).Rem(n.value.Num(), divisor).Cmp(remainder) == 0
	}
	return selectorCondition{fmt.Sprintf(`{"$mod":[%v,%v]}`, divisor, remainder), is, inverted(is)}
}

// matches draws a condition by a regular expression, one that says what a function does.
func (m *selectorModel) matches() selectorCondition {
	c := m.pick("a", "b", "z", "1", "\U0001F600", "\U0001F601")
	last := func(s string) string { return strings.TrimSuffix(s, "\n") }
	patterns := []struct {
		text  string
		match func(s string) bool
	}{
		{c, func(s string) bool { return strings.Contains(s, c) }},
		{"^" + c, func(s string) bool { return strings.HasPrefix(s, c) }},
		{c + "$", func(s string) bool { return strings.HasSuffix(s, c) || strings.HasSuffix(last(s), c) }},
		{"^[" + c + "b]*$", func(s string) bool { return strings.Trim(last(s), c+"b") == "" }},
		{"^.$", func(s string) bool { return utf8.RuneCountInString(last(s)) == 1 && s != "\n\n" }},
		{"a|" + c, func(s string) bool { return strings.ContainsAny(s, "a"+c) }},
		{c + "(?=b)", func(s string) bool { return strings.Contains(s, c+"b") }},
		{"(" + c + `)\1`, func(s string) bool { return strings.Contains(s, c+c) }},
		{"", func(string) bool { return true }},
	}
	p := patterns[m.rng.IntN(len(patterns))]
	is := func(v any, _ bool) bool {
		s, ok := v.(string)
		return ok && p.match(s)
	}
	return selectorCondition{`{"$regex":` + selectorText(p.text) + `}`, is, inverted(is)}
}

// elements draws a condition on the elements of a list.
func (m *selectorModel) elements() selectorCondition {
	kid, op := m.condition(true), m.pick("$elemMatch", "$allMatch")
	is := func(v any, typed bool) bool {
		list, _ := v.([]any)
		matches := 0
		for _, one := range list {
			matches += truth(kid.is(one, typed))
		}
		return matches > 0 && (op == "$elemMatch" || matches == len(list))
	}
	return selectorCondition{fmt.Sprintf("{%q:%s}", op, kid.text), is, func(v any, _ bool) bool { return !is(v, false) }}
}

// selector draws a condition on a document.
func (m *selectorModel) selector(depth int) selectorCondition {
	if k := m.rng.IntN(10); k < 4 && depth > 0 {
		return m.combined(depth)
	} else if k == 4 {
		return m.exists()
	}
	path, kid := m.field(), m.condition(false)
	at := func(test selectorTest) selectorTest {
		return func(doc any, typed bool) bool {
			v, ok, _ := m.follow(doc, path)
			return ok && test(v, typed)
		}
	}
	return selectorCondition{fmt.Sprintf("{%q:%s}", path, kid.text), at(kid.is), at(kid.isNo)}
}

func (m *selectorModel) exists() selectorCondition {
	path := m.field()
	is := func(doc any, _ bool) bool { _, ok, _ := m.follow(doc, path); return ok }
	not := func(doc any, _ bool) bool { _, _, missing := m.follow(doc, path); return missing }
	if m.rng.IntN(2) == 0 {
		return selectorCondition{fmt.Sprintf(`{%q:{"$exists":true}}`, path), is, not}
	}
	return selectorCondition{fmt.Sprintf(`{%q:{"$exists":false}}`, path), not, is}
}

func (m *selectorModel) combined(depth int) selectorCondition {
	if m.rng.IntN(4) == 0 {
		kid := m.selector(depth - 1)
		return selectorCondition{`{"$not":` + kid.text + `}`, kid.isNo, kid.is}
	}
	var kids []selectorCondition
	var texts []string
	for range 1 + m.rng.IntN(3) {
		kids = append(kids, m.selector(depth-1))
		texts = append(texts, kids[len(kids)-1].text)
	}
	some := func(no, every bool) selectorTest {
		return func(doc any, typed bool) bool {
			for _, kid := range kids {
				test := kid.is
				if no {
					test = kid.isNo
				}
				if test(doc, typed) != every {
					return !every
				}
			}
			return every
		}
	}
	op := m.pick("$and", "$or", "$nor")
	text := fmt.Sprintf("{%q:[%s]}", op, strings.Join(texts, ","))
	switch op {
	case "$and":
		return selectorCondition{text, some(false, true), some(true, false)}
	case "$or":
		return selectorCondition{text, some(false, false), some(true, true)}
	default:
		return selectorCondition{text, some(true, true), some(false, false)}
	}
}
