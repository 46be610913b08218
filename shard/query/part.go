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
