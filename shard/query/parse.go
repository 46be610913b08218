package query

import (
	"fmt"
	"strings"

	"divan/storage/doc"
)

// parser reads a canonical, hence well-formed, selector in one pass.
type parser struct {
	text  []byte
	pos   int
	depth int
	left  *budget
}

// value moves behind the value at hand and returns its text.
func (p *parser) value() []byte {
	from := p.pos
	p.pos = skipValue(p.text, from)
	return p.text[from:p.pos:p.pos]
}

// name moves behind the name at hand and its colon.
func (p *parser) name() string {
	from := p.pos
	p.pos = skipString(p.text, from) + 1
	name, _ := doc.Unquote(p.text[from : p.pos-1]) // canonical
	return name
}

// selector reads a selector, or a bare value, which means equality. Several
// members are several conditions; of members of one name the last one counts.
func (p *parser) selector() (*node, error) {
	from := p.pos
	if p.text[from] != '{' {
		if err := p.left.take(nodeMemory); err != nil {
			return nil, err
		}
		return newCompare(opEq, p.value())
	}
	if p.depth++; p.depth > maxDepth {
		return nil, invalid("invalid_selector", fmt.Sprintf("The selector is nested more than %d levels deep.", maxDepth))
	}
	defer func() { p.depth-- }()
	var kids []*node
	places := map[string]int{} // in kids
	for p.pos++; p.text[p.pos] != '}'; {
		if p.text[p.pos] == ',' {
			p.pos++
		}
		name := p.name()
		n, err := p.condition(name)
		if err != nil {
			return nil, err
		}
		if i, again := places[name]; again {
			kids[i] = n
			continue
		}
		places[name] = len(kids)
		kids = append(kids, n)
	}
	p.pos++
	switch len(kids) {
	case 0:
		if err := p.left.take(nodeMemory); err != nil {
			return nil, err
		}
		return newCompare(opEq, p.text[from:p.pos])
	case 1:
		return kids[0], nil
	}
	return &node{op: opAnd, kids: kids}, nil
}

// condition reads the value of one member.
func (p *parser) condition(name string) (*node, error) {
	if err := p.left.take(nodeMemory); err != nil {
		return nil, err
	}
	switch name {
	case "$and":
		return p.list(opAnd, name)
	case "$or":
		return p.list(opOr, name)
	case "$nor":
		return p.list(opNor, name)
	case "$not":
		return p.object(opNot, name)
	case "$elemMatch":
		return p.object(opElemMatch, name)
	case "$allMatch":
		return p.object(opAllMatch, name)
	case "$keyMapMatch":
		return p.object(opKeyMapMatch, name)
	}
	if strings.HasPrefix(name, "$") {
		return newOperator(name, p.value(), p.left)
	}
	kid, err := p.selector()
	if err != nil {
		return nil, err
	}
	return &node{op: opField, field: name, kids: []*node{kid}}, nil
}

// list reads an array of selectors.
func (p *parser) list(o op, name string) (*node, error) {
	if p.text[p.pos] != '[' {
		return nil, badArg(name, p.value())
	}
	n := &node{op: o}
	for p.pos++; p.text[p.pos] != ']'; {
		if p.text[p.pos] == ',' {
			p.pos++
		}
		kid, err := p.selector()
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, kid)
	}
	p.pos++
	return n, nil
}

// object reads a selector that must be an object.
func (p *parser) object(o op, name string) (*node, error) {
	if p.text[p.pos] != '{' {
		return nil, badArg(name, p.value())
	}
	kid, err := p.selector()
	if err != nil {
		return nil, err
	}
	return &node{op: o, kids: []*node{kid}}, nil
}
