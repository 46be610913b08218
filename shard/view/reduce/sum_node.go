package reduce

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"divan/storage/doc"
)

// sumNode is the sum of the values at one place: the value of a row, or a member
// of an object. What cannot be added up stays side by side, and only the result
// says that it is an error: so an order in which values come does not matter.
type sumNode struct {
	several bool     // more than one value came together here
	array   bool     // of the numbers, some were arrays; a number is an array of one
	numbers []number // one by one
	object  bool
	members []sumMember // in the order of their names
	bad     []byte      // a value that cannot be added: of several the first in the order of bytes
	thrown  []byte      // an error that CouchDB passes on as it is, chosen in the same way
}

type sumMember struct {
	name string
	node *sumNode
}

// What a sumNode in a state is made of.
const (
	sumNumber byte = 1 << iota // alone it is a single number
	sumArray
	sumObject
	sumBad
	sumThrown
	sumSeveral
)

// merging notes that a further value comes.
func (n *sumNode) merging() {
	n.several = n.several || n.array || len(n.numbers) > 0 || n.object || n.bad != nil || n.thrown != nil
}

// addValue adds a JSON value.
func (n *sumNode) addValue(value []byte) {
	n.merging()
	switch {
	case isNumber(value):
		if s, ok := parseScalar(value); ok {
			n.at(0).add(&s)
			return
		}
	case doc.IsArray(value):
		var few [8]scalar
		if numbers, ok := parseNumbers(few[:0], value); ok {
			n.array = true
			for i := range numbers {
				n.at(i).add(&numbers[i])
			}
			return
		}
	case doc.IsObject(value):
		if bytes.Contains(value, []byte("builtin_reduce_error")) && isThrown(value) {
			n.throw(value)
			return
		}
		n.object = true
		if doc.EachMember(value, func(name string, member []byte) error {
			n.member(name).addValue(member)
			return nil
		}) == nil {
			return
		}
	}
	n.refuse(value)
}

func isThrown(object []byte) bool {
	name, ok := doc.Unquote(doc.Lookup(object, "error"))
	return ok && name == "builtin_reduce_error"
}

// parseNumbers appends the elements of an array of numbers.
func parseNumbers(to []scalar, array []byte) ([]scalar, bool) {
	ok := true
	err := doc.EachElement(array, func(value []byte) error {
		s, is := parseScalar(value)
		ok = ok && is
		to = append(to, s)
		return nil
	})
	return to, ok && err == nil
}

// addNumber adds a sum.
func (n *sumNode) addNumber(total *number) {
	n.merging()
	n.at(0).merge(total)
}

// at returns the sum at a place that is there or comes next.
func (n *sumNode) at(i int) *number {
	if i == len(n.numbers) {
		n.numbers = append(n.numbers, number{})
	}
	return &n.numbers[i]
}

func (n *sumNode) refuse(value []byte) { n.bad = lesser(n.bad, value) }

func (n *sumNode) throw(value []byte) { n.thrown = lesser(n.thrown, value) }

// lesser returns the one of two values to keep; nil is none.
func lesser(a, b []byte) []byte {
	if a == nil || bytes.Compare(b, a) < 0 {
		return b
	}
	return a
}

// member returns the node of a member, a new one as necessary.
func (n *sumNode) member(name string) *sumNode {
	at, found := slices.BinarySearchFunc(n.members, name, func(m sumMember, name string) int {
		return strings.Compare(m.name, name)
	})
	if !found {
		n.members = slices.Insert(n.members, at, sumMember{name, &sumNode{}})
	}
	return n.members[at].node
}

func (n *sumNode) appendState(dst []byte) []byte {
	var form byte
	set := func(on bool, bit byte) {
		if on {
			form |= bit
		}
	}
	set(len(n.numbers) > 0 && !n.array, sumNumber)
	set(n.array, sumArray)
	set(n.object, sumObject)
	set(n.bad != nil, sumBad)
	set(n.thrown != nil, sumThrown)
	set(n.several, sumSeveral)
	dst = append(dst, form)
	if n.array {
		dst = binary.AppendUvarint(dst, uint64(len(n.numbers)))
	}
	for i := range n.numbers {
		dst = n.numbers[i].appendState(dst)
	}
	if n.object {
		dst = binary.AppendUvarint(dst, uint64(len(n.members)))
		for _, m := range n.members {
			dst = appendText(dst, []byte(m.name))
			dst = m.node.appendState(dst)
		}
	}
	if n.bad != nil {
		dst = appendText(dst, n.bad)
	}
	if n.thrown != nil {
		dst = appendText(dst, n.thrown)
	}
	return dst
}

// mergeState adds the node that follows in a state.
func (n *sumNode) mergeState(r *reader, depth int) {
	if depth > doc.MaxDepth {
		r.fail()
		return
	}
	n.merging()
	form := r.byte()
	n.several = n.several || form&sumSeveral != 0
	count := 0
	switch {
	case form&sumArray != 0:
		n.array = true
		count = r.count()
	case form&sumNumber != 0:
		count = 1
	}
	for i := range count {
		n.at(i).mergeState(r)
	}
	if form&sumObject != 0 {
		n.object = true
		for range r.count() {
			name := string(r.text())
			n.member(name).mergeState(r, depth+1)
		}
	}
	if form&sumBad != 0 {
		n.refuse(r.text())
	}
	if form&sumThrown != 0 {
		n.throw(r.text())
	}
}

// err returns the error that a sum is, nil for none. A single value of any kind
// inside an object is passed on, and so is one array that begins with a number.
func (n *sumNode) err(top bool) []byte {
	if e := n.findThrown(); e != nil {
		return e
	}
	return n.findBad(top)
}

// beginsWithNumber reports whether a value is an array that CouchDB's 0 can be added
// to: it looks at the first element only.
func beginsWithNumber(value []byte) bool { return doc.IsArray(value) && isNumber(value[1:]) }

func (n *sumNode) findThrown() []byte {
	e := n.thrown
	for _, m := range n.members {
		if inner := m.node.findThrown(); inner != nil {
			e = lesser(e, inner)
		}
	}
	return e
}

func (n *sumNode) findBad(top bool) []byte {
	switch {
	case n.bad != nil && (n.several || top && !beginsWithNumber(n.bad)):
		return appendError(nil, sumReason, n.bad)
	case n.object && (n.array || len(n.numbers) > 0):
		return appendError(nil, sumReason, n.appendNumbers(nil))
	}
	for _, m := range n.members {
		if e := m.node.findBad(false); e != nil {
			return e
		}
	}
	return nil
}

// appendJSON appends the sum of a node without an error.
func (n *sumNode) appendJSON(dst []byte) []byte {
	switch {
	case n.bad != nil:
		return append(dst, n.bad...)
	case !n.object:
		return n.appendNumbers(dst)
	}
	dst = append(dst, '{')
	for i, m := range n.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = doc.AppendString(dst, m.name)
		dst = append(dst, ':')
		dst = m.node.appendJSON(dst)
	}
	return append(dst, '}')
}

func (n *sumNode) appendNumbers(dst []byte) []byte {
	if !n.array {
		var total number
		for i := range n.numbers { // one at most
			total.merge(&n.numbers[i])
		}
		return total.appendJSON(dst)
	}
	dst = append(dst, '[')
	for i := range n.numbers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = n.numbers[i].appendJSON(dst)
	}
	return append(dst, ']')
}
