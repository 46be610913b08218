package query

import "bytes"

// eval reports whether n holds for the value v. raw: strings compare byte by
// byte, as ids do.
func (w *Work) eval(n *node, v []byte, raw bool) bool {
	if !w.take(conditionCost) {
		return false // the caller may negate it, but the document is given up
	}
	switch n.op {
	case opField:
		return w.field(n, v, raw)
	case opAnd:
		for _, kid := range n.kids {
			if !w.eval(kid, v, raw) {
				return false
			}
		}
		return true
	case opOr:
		return len(n.kids) == 0 || w.any(n.kids, v, raw)
	case opNot:
		return !w.eval(n.kids[0], v, raw)
	case opNor:
		return !w.any(n.kids, v, raw)
	case opElemMatch, opAllMatch:
		return w.elements(n, v, raw)
	case opKeyMapMatch:
		return w.keys(n, v, raw)
	case opDefault:
		return true
	case opIn:
		return w.in(n.set, v, raw)
	case opNin:
		return !w.in(n.set, v, raw)
	default:
		return w.operator(n, v, raw)
	}
}

func (w *Work) any(kids []*node, v []byte, raw bool) bool {
	for _, kid := range kids {
		if w.eval(kid, v, raw) {
			return true
		}
	}
	return false
}

// field follows the path of an opField. Without a value nothing holds but that
// it does not exist, and not even that where the path ends at something that
// can have no members.
func (w *Work) field(n *node, v []byte, raw bool) bool {
	kid := n.kids[0]
	if n.field == "" {
		return w.eval(kid, v, raw)
	}
	state := present
	if n.slot >= 0 {
		if v = w.slots[n.slot]; v == nil {
			state = missing
		}
	}
	if state == present && len(n.path) > 0 {
		if !w.take(perByte * len(v)) {
			return false
		}
		v, state = follow(v, n.path)
	}
	if state != present {
		return state == missing && kid.op == opExists && !kid.flag
	}
	return w.eval(kid, v, raw || n.raw)
}

// elements evaluates $elemMatch and $allMatch: neither holds for an empty array.
func (w *Work) elements(n *node, v []byte, raw bool) bool {
	if kindOf(v) != kindArray {
		return false
	}
	if !w.take(perByte * len(v)) {
		return false
	}
	all := n.op == opAllMatch
	some := false
	for e := (elements{text: v}); e.next(); {
		some = true
		if w.eval(n.kids[0], e.value, raw) != all {
			return !all
		}
	}
	return all && some
}

func (w *Work) keys(n *node, v []byte, raw bool) bool {
	if kindOf(v) != kindObject || !w.take(perByte*len(v)) {
		return false
	}
	for m := (members{text: v}); m.next(); {
		if w.eval(n.kids[0], m.name, raw) {
			return true
		}
	}
	return false
}

// in reports whether v, or an element of it when it is an array, is in the set.
func (w *Work) in(s *set, v []byte, raw bool) bool {
	if !w.take(perByte * len(v)) {
		return false
	}
	if kindOf(v) != kindArray {
		return w.member(s, v, raw)
	}
	for e := (elements{text: v}); e.next(); {
		if w.member(s, e.value, raw) {
			return true
		}
	}
	return false
}

// operator evaluates an operator about one value.
func (w *Work) operator(n *node, v []byte, raw bool) bool {
	if n.op != opRegex && !w.take(n.cost(v)) {
		return false
	}
	if n.typed && n.otherType(v) {
		return false
	}
	switch n.op {
	case opEq:
		return w.equal(&n.arg, v, raw)
	case opNe:
		return !w.equal(&n.arg, v, raw)
	case opLt:
		return w.compare(&n.arg, v, raw) < 0
	case opLte:
		return w.compare(&n.arg, v, raw) <= 0
	case opGt:
		return w.compare(&n.arg, v, raw) > 0
	case opGte:
		return w.compare(&n.arg, v, raw) >= 0
	case opExists:
		return n.flag
	case opType:
		return string(n.arg.text) == typeName(v)
	case opAll:
		return all(n, v)
	case opSize:
		return kindOf(v) == kindArray && int64(count(v)) == n.count
	case opMod:
		return n.mod.remains(v)
	case opRegex:
		return kindOf(v) == kindString && n.regex.match(w, v)
	case opBeginsWith:
		// Canonical text writes each character in one way only.
		return kindOf(v) == kindString && bytes.HasPrefix(v, n.arg.text[:len(n.arg.text)-1])
	default:
		return false
	}
}

// cost returns the cost of an operator other than $regex, without that of
// w.key.
func (n *node) cost(v []byte) int {
	switch n.op {
	case opExists, opType, opBeginsWith:
		return 0
	case opMod:
		return n.mod.cost(v)
	case opAll:
		return setByte * len(v)
	default:
		return perByte * len(v)
	}
}

// typeName returns the name of a value's type as $type writes it, in quotes.
func typeName(v []byte) string {
	switch kindOf(v) {
	case kindNull:
		return `"null"`
	case kindFalse, kindTrue:
		return `"boolean"`
	case kindNumber:
		return `"number"`
	case kindString:
		return `"string"`
	case kindArray:
		return `"array"`
	case kindObject:
		return `"object"`
	default:
		return ""
	}
}

// all evaluates $all: each term is an element of the array v, or the only term
// is that array. Terms are the same only when they are written the same: 1 is
// not 1.0, and the order of members counts.
func all(n *node, v []byte) bool {
	if len(n.terms) == 0 || kindOf(v) != kindArray {
		return false
	}
	v = Once(v)
	if n.whole != nil && sameTerm(n.whole, v) {
		return true
	}
	if len(n.terms) == 1 {
		for e := (elements{text: v}); e.next(); {
			if _, ok := n.terms[string(e.value)]; ok {
				return true
			}
		}
		return false
	}
	missing := make(map[string]struct{}, len(n.terms))
	for t := range n.terms {
		missing[t] = struct{}{}
	}
	for e := (elements{text: v}); len(missing) > 0 && e.next(); {
		delete(missing, string(e.value))
	}
	return len(missing) == 0
}

// sameTerm compares arrays as wholes, where 1 is 1.0.
func sameTerm(a, b []byte) bool {
	for len(a) > 0 && len(b) > 0 {
		if a[0] != b[0] && (!startsNumber(a[0]) || !startsNumber(b[0])) {
			return false
		}
		n, m := 1, 1
		switch {
		case a[0] == '"':
			n, m = skipString(a, 0), skipString(b, 0)
			if !bytes.Equal(a[:n], b[:m]) {
				return false
			}
		case startsNumber(a[0]):
			n, m = skipValue(a, 0), skipValue(b, 0)
			if !bytes.Equal(a[:n], b[:m]) && compareNumbers(number(a[:n]), number(b[:m])) != 0 {
				return false
			}
		}
		a, b = a[n:], b[m:]
	}
	return len(a) == len(b)
}

func startsNumber(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

// count returns the number of elements of an array.
func count(v []byte) int {
	n := 0
	for e := (elements{text: v}); e.next(); {
		n++
	}
	return n
}
