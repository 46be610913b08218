package query

// pushFields moves the names of fields down to the conditions: what stands
// above a condition becomes one dotted path. Below $elemMatch and its like
// paths start anew. What it makes it takes from the budget.
func pushFields(n *node, path string, b *budget) (*node, error) {
	switch n.op {
	case opAnd, opOr, opNot, opNor:
		for i, kid := range n.kids {
			var err error
			if n.kids[i], err = pushFields(kid, path, b); err != nil {
				return nil, err
			}
		}
		return n, nil
	case opField:
		if path == "" {
			return pushFields(n.kids[0], n.field, b)
		}
		if err := b.take(len(path) + 1 + len(n.field)); err != nil {
			return nil, err
		}
		return pushFields(n.kids[0], path+"."+n.field, b)
	case opDefault:
		if path != "" || !isText(n.def) {
			arg := append(append([]byte(`{"$default":`), n.def...), '}')
			return nil, invalid("bad_field", "Invalid field normalization on selector: "+term(arg))
		}
		return n, nil
	case opElemMatch, opAllMatch, opKeyMapMatch:
		kid, err := pushFields(n.kids[0], "", b)
		if err != nil {
			return nil, err
		}
		n.kids[0] = kid
	default:
	}
	if err := b.take(nodeMemory); err != nil {
		return nil, err
	}
	return &node{op: opField, field: path, kids: []*node{n}}, nil
}

// isText reports whether the argument of $default is {"$text": …}.
func isText(def []byte) bool {
	m := members{text: def}
	return m.next() && string(m.name) == `"$text"` && !m.next()
}

// pushNegations removes $not and $nor by negating the conditions below, so
// that a negated condition still requires its field. It does not look below
// $elemMatch and its like: there a negation stays one, and holds for what has
// no such field.
func pushNegations(n *node) (*node, error) {
	switch n.op {
	case opNot:
		return negate(n.kids[0])
	case opNor:
		return n.each(opAnd, negate)
	case opAnd, opOr:
		return n.each(n.op, pushNegations)
	default:
		return n, nil
	}
}

// each applies fn to the kids of n, which becomes an o.
func (n *node) each(o op, fn func(*node) (*node, error)) (*node, error) {
	for i, kid := range n.kids {
		var err error
		if n.kids[i], err = fn(kid); err != nil {
			return nil, err
		}
	}
	n.op = o
	return n, nil
}

// negate returns what holds when n does not, and the field is there.
func negate(n *node) (*node, error) {
	switch n.op {
	case opNot:
		return pushNegations(n.kids[0])
	case opNor:
		return n.each(opOr, pushNegations)
	case opAnd:
		return n.each(opOr, negate)
	case opOr:
		return n.each(opAnd, negate)
	case opField:
		return n.each(opField, negate)
	case opDefault:
		return nil, badArg("$not", append(append([]byte(`{"$default":`), n.def...), '}'))
	case opLt:
		return n.with(opGte), nil
	case opLte:
		return n.with(opGt), nil
	case opEq:
		return n.with(opNe), nil
	case opNe:
		return n.with(opEq), nil
	case opGte:
		return n.with(opLt), nil
	case opGt:
		return n.with(opLte), nil
	case opIn:
		return n.with(opNin), nil
	case opNin:
		return n.with(opIn), nil
	case opExists:
		c := n.with(opExists)
		c.flag = !c.flag
		return c, nil
	default:
		return &node{op: opNot, kids: []*node{n}}, nil
	}
}
