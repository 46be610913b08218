package query

import "strconv"

// Part is a condition of a selector in its normal form, or several of them: what package
// text makes queries of.
type Part struct{ n *node }

// Root returns the whole selector; ok is false for {}, which has no parts.
func (s *Selector) Root() (p Part, ok bool) { return Part{s.root}, s.root != nil }

// Operator returns the operator as it is written; empty: the part is a field with the
// condition on it. $text is $default.
func (p Part) Operator() string { return operatorNames[p.n.op] }

// Field returns the path of a field; empty: the value at hand.
func (p Part) Field() string { return p.n.field }

// Parts returns how many parts an operator on selectors has; a field has one, the condition
// on it.
func (p Part) Parts() int { return len(p.n.kids) }

// Part returns one of the parts.
func (p Part) Part(i int) Part { return Part{p.n.kids[i]} }

// Argument returns the argument of any other operator, as canonical JSON.
func (p Part) Argument() []byte {
	switch p.n.op {
	case opExists:
		return strconv.AppendBool(nil, p.n.flag)
	case opDefault:
		return p.n.def
	default:
		return p.n.arg.text
	}
}

// Text reports whether the part needs a full-text index.
func (p Part) Text() bool { return p.n.text() }

// EachValue calls f for each element of an argument that is an array.
func (p Part) EachValue(f func(value []byte) error) error {
	for e := (elements{text: p.Argument()}); e.next(); {
		if err := f(e.value); err != nil {
			return err
		}
	}
	return nil
}

// Path returns the keys of the path of a field; none: the value at hand.
func (p Part) Path() ([]string, error) {
	if p.n.field == "" {
		return nil, nil
	}
	return splitField(p.n.field)
}

// ByType returns the selector as an index of full text judges it: a comparison by order
// with a string, a number or a boolean holds only for values of that type, as the field
// that CouchDB asks has no others. Below a negation within arrays it stays as it is.
func (s *Selector) ByType() *Selector {
	if s.root == nil {
		return s
	}
	return &Selector{root: s.root.byType(), slots: s.slots}
}

func (n *node) byType() *node {
	c := *n
	switch n.op {
	case opNot, opNor:
		return &c
	case opLt, opLte, opGt, opGte:
		c.typed = n.arg.kind >= kindFalse && n.arg.kind <= kindString
		return &c
	default:
	}
	c.kids = make([]*node, len(n.kids))
	for i, kid := range n.kids {
		c.kids[i] = kid.byType()
	}
	return &c
}

// otherType reports whether v has another type than the argument of a comparison.
func (n *node) otherType(v []byte) bool {
	k := kindOf(v)
	return k != n.arg.kind && (k != kindFalse && k != kindTrue || n.arg.kind != kindFalse && n.arg.kind != kindTrue)
}
