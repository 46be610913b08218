package text

import (
	"math"
	"strconv"

	"divan/shard/query"
	"divan/shard/search/syntax"
	"divan/storage/doc"
)

// equal returns what finds documents with a value at a place.
func (t *translator) equal(v []byte, at place) syntax.Query {
	switch v[0] {
	case '{':
		return t.exists(at)
	case '[':
		return t.equalArray(v, at)
	}
	if q := t.same(v, at); q != nil {
		return q
	}
	return t.names(at, typeOf(v))
}

// typeOf returns the ending of the names of scalars like v.
func typeOf(v []byte) string {
	switch v[0] {
	case '"':
		return query.TextString
	case 'n':
		return query.TextNull
	case 't', 'f':
		return query.TextBoolean
	default:
		return query.TextNumber
	}
}

// same returns what finds those documents, and no others, that have a scalar at a place; nil:
// the index does not know.
func (t *translator) same(v []byte, at place) syntax.Query {
	name := at.name + typeOf(v)
	if !t.indexed(name) {
		return nil
	}
	var q syntax.Query
	switch v[0] {
	case '"':
		if text, _ := doc.Unquote(v); t.whole(name, text) {
			q = t.phrase(name, text)
		}
	case 'n':
	case 't', 'f':
		if t.Exact {
			q = t.phrase(name, string(v))
		}
	default:
		q = t.number(name, v)
	}
	if isAll(q) {
		return nil
	}
	return q
}

func (t *translator) equalArray(v []byte, at place) syntax.Query {
	elements := at.element()
	var out []syntax.Query
	n := 0
	_ = doc.EachElement(v, func(element []byte) error { // canonical
		if n++; n <= maxClauses && t.left >= 0 {
			out = append(out, t.equal(element, elements))
		}
		return nil
	})
	return and(append(out, t.number(elements.name+query.TextLength, strconv.AppendInt(nil, int64(n), 10)))...)
}

// in returns what finds documents with one of the values at a place, or in an array there.
func (t *translator) in(list [][]byte, at place) syntax.Query {
	if len(list) > maxValues {
		return t.exists(at)
	}
	var out []syntax.Query
	for _, v := range list {
		if t.left < 0 {
			return syntax.All{}
		}
		out = append(out, t.equal(v, at), t.equal(v, at.element()))
	}
	return or(out...)
}

// notEqual returns what finds documents with another value at a place than those.
func (t *translator) notEqual(list [][]byte, at place) syntax.Query {
	if at.many || len(list) > maxValues {
		return t.exists(at)
	}
	var out []syntax.Query
	for _, v := range list {
		if q := t.same(v, at); q != nil && t.left >= 0 && !rounded(v) {
			out = append(out, q)
		}
	}
	return without(t.exists(at), or(out...))
}

// rounded reports whether other numbers than v have its place in an index, which holds
// doubles.
func rounded(v []byte) bool {
	if typeOf(v) != query.TextNumber {
		return false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return err != nil || math.Abs(f) >= 1<<53
}

// all returns what finds documents with an array at a place that has all values, or is the
// only one.
func (t *translator) all(list [][]byte, at place) syntax.Query {
	if len(list) == 0 {
		return nil
	}
	var out []syntax.Query
	for _, v := range list[:min(len(list), maxClauses)] {
		out = append(out, t.equal(v, at.element()))
	}
	q := and(out...)
	if len(list) == 1 && list[0][0] == '[' {
		q = or(q, t.equal(list[0], at))
	}
	return q
}

// compare returns what finds documents with a value at a place that is above or below
// another one of its type; see query.Selector.ByType.
func (t *translator) compare(op string, v []byte, at place) syntax.Query {
	below := op == "$lt" || op == "$lte"
	inclusive := op == "$lte" || op == "$gte"
	switch c := v[0]; {
	case c == '"' && (t.codePoints || at.name == "_5fid"): // ids are in the order of their bytes
		return t.terms(v, at, below, inclusive)
	case c == '"':
		return t.names(at, query.TextString)
	case c == '-' || c >= '0' && c <= '9':
		return t.numbers(v, at, below, inclusive)
	case c == 't' || c == 'f':
		return t.names(at, query.TextBoolean)
	default:
		return t.exists(at)
	}
}

// numbers returns what finds the numbers above or below one.
func (t *translator) numbers(v []byte, at place, below, inclusive bool) syntax.Query {
	name := at.name + query.TextNumber
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !t.indexed(name) {
		return t.names(at, query.TextNumber)
	}
	inclusive = inclusive || rounded(v)
	q := syntax.NumberRange{Field: name, Lower: math.Inf(-1), Upper: math.Inf(1), IncludesLower: true, IncludesUpper: true}
	if below {
		q.Upper, q.IncludesUpper = n, inclusive
	} else {
		q.Lower, q.IncludesLower = n, inclusive
	}
	return t.take(q)
}

// highest is a string above almost all, and no number: a range between two bounds that read
// as numbers, or are open, is one of numbers.
const highest = "\U0010ffff"

// terms returns what finds the strings above or below one, by their code points.
func (t *translator) terms(v []byte, at place, below, inclusive bool) syntax.Query {
	name := at.name + query.TextString
	text, _ := doc.Unquote(v)
	if !t.Exact || !t.indexed(name) || len(text) > maxTerm {
		return t.names(at, query.TextString)
	}
	if below {
		return t.take(syntax.Range{Field: name, Lower: syntax.Bound{Inclusive: true}, Upper: syntax.Bound{Text: text, Inclusive: inclusive}})
	}
	return or(
		t.take(syntax.Range{Field: name, Lower: syntax.Bound{Text: text, Inclusive: inclusive}, Upper: syntax.Bound{Text: highest, Inclusive: true}}),
		t.prefix(name, highest),
	)
}
