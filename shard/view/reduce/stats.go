package reduce

import (
	"encoding/binary"
	"strings"

	"divan/shard/query"
	"divan/storage/doc"
	"divan/storage/fault"
)

// stats is _stats. Its state is a statsNode.
type stats struct{}

// statsReason is CouchDB's text up to the value.
const statsReason = "The _stats function requires that map values be numbers or arrays of numbers, not "

// maxCause is how much of a value an error shows, in bytes.
const maxCause = 200

// Reduce implements Function.
func (stats) Reduce(dst []byte, rows []Row) ([]byte, error) {
	var node statsNode
	counted := 0
	for i := range rows {
		if s, ok := parseScalar(rows[i].Value); ok {
			node.one.addValue(&s, counted == 0 && !node.plain)
			counted++
			continue
		}
		if counted > 0 { // what follows may change plain
			node.flush(counted)
			counted = 0
		}
		node.addValue(rows[i].Value)
	}
	if counted > 0 {
		node.flush(counted)
	}
	return node.appendState(dst), nil
}

// Rereduce implements Function.
func (stats) Rereduce(dst []byte, states [][]byte) ([]byte, error) {
	var node statsNode
	for _, state := range states {
		r := reader{b: state}
		node.mergeState(&r, 0)
		if err := r.end(); err != nil {
			return dst, err
		}
	}
	return node.appendState(dst), nil
}

// Final implements Function. Its error for values that are no numbers is that
// of the whole query.
func (stats) Final(dst, state []byte) ([]byte, error) {
	r := reader{b: state}
	var node statsNode
	node.mergeState(&r, 0)
	if err := r.end(); err != nil {
		return dst, err
	}
	if reason := node.err(); reason != "" {
		return dst, &fault.Error{Kind: fault.BadFunction, Code: "invalid_value", Reason: reason}
	}
	return node.appendJSON(dst), nil
}

// statsNode holds the statistics of the values at one place: the value of a
// row, or an element of an array. Values that do not go together stay side by
// side; the result says that this is an error.
type statsNode struct {
	plain    bool // there were numbers
	one      measures
	array    bool // there were arrays
	elements []statsNode
	uneven   bool   // the arrays were not of one length
	bad      string // what is wrong with a value: of several the first in the order of bytes
	alone    string // of the only value: what CouchDB says of one that it begins with
}

// measures are the statistics of numbers.
type measures struct {
	sum, count, squares number
	least, greatest     scalar
}

// addValue adds a number, but does not count it.
func (m *measures) addValue(s *scalar, first bool) {
	m.sum.add(s)
	m.squares.addSquare(s)
	if first {
		m.least, m.greatest = *s, *s
		return
	}
	m.least.least(s)
	m.greatest.greatest(s)
}

// flush counts numbers that were added.
func (n *statsNode) flush(counted int) {
	n.alone = ""
	n.one.count.addInt(int64(counted))
	n.plain = true
}

func (n *statsNode) addValue(value []byte) {
	only := n.merging()
	switch {
	case isNumber(value):
		if s, ok := parseScalar(value); ok {
			n.one.addValue(&s, !n.plain)
			n.flush(1)
			return
		}
	case doc.IsArray(value):
		i, fresh := 0, !n.array
		if doc.EachElement(value, func(element []byte) error {
			n.element(i, fresh).addValue(element)
			i++
			return nil
		}) == nil {
			n.uneven = n.uneven || i != len(n.elements)
			n.array = true
			return
		}
	case doc.IsObject(value):
		n.addPacked(value)
		return
	}
	n.refuse(statsReason + "'" + term(value, true) + "'")
	if only {
		n.alone = "non-numeric _stats input: " + term(value, false)
	}
}

// merging notes that a further value comes; it reports whether that is the only one.
func (n *statsNode) merging() bool {
	n.alone = ""
	return !n.plain && !n.array && n.bad == ""
}

// element returns the statistics of an element. An array that has more elements
// than those before it makes them all uneven.
func (n *statsNode) element(i int, fresh bool) *statsNode {
	if i == len(n.elements) {
		n.elements = append(n.elements, statsNode{})
		n.uneven = n.uneven || !fresh
	}
	return &n.elements[i]
}

// statsFields are the members of statistics, in the order in which they are
// printed.
const statsFields = "sum,count,min,max,sumsqr"

// addPacked adds statistics that the map function made.
func (n *statsNode) addPacked(object []byte) {
	var fields [5]scalar
	i := 0
	for name := range strings.SplitSeq(statsFields, ",") {
		value := doc.Lookup(object, name)
		if value == nil {
			properties := strings.TrimSuffix(strings.TrimPrefix(term(object, true), "{"), "}")
			n.refuse("user _stats input missing required field " + name + " (" + properties + ")")
			return
		}
		var ok bool
		if fields[i], ok = parseScalar(value); !ok {
			n.refuse("non-numeric _stats input received for " + name + ": " + term(value, false))
			return
		}
		i++
	}
	n.one.sum.add(&fields[0])
	n.one.count.add(&fields[1])
	n.one.squares.add(&fields[4])
	n.bound(&fields[2], &fields[3])
}

// bound takes a further minimum and maximum.
func (n *statsNode) bound(least, greatest *scalar) {
	if !n.plain {
		n.one.least, n.one.greatest = *least, *greatest
		n.plain = true
		return
	}
	n.one.least.least(least)
	n.one.greatest.greatest(greatest)
}

// term is a value as CouchDB's errors show it, short enough for a state.
func term(value []byte, readable bool) string {
	text := query.Term(value, readable)
	if len(text) > maxCause {
		return strings.ToValidUTF8(text[:maxCause], "") + "…"
	}
	return text
}

func (n *statsNode) refuse(reason string) {
	if n.bad == "" || reason < n.bad {
		n.bad = reason
	}
}

// What a statsNode in a state is made of.
const (
	statsPlain byte = 1 << iota
	statsArray
	statsUneven
	statsBad
	statsAlone
)

func (n *statsNode) appendState(dst []byte) []byte {
	var form byte
	set := func(on bool, bit byte) {
		if on {
			form |= bit
		}
	}
	set(n.plain, statsPlain)
	set(n.array, statsArray)
	set(n.uneven, statsUneven)
	set(n.bad != "", statsBad)
	set(n.alone != "", statsAlone)
	dst = append(dst, form)
	if n.plain {
		dst = n.one.sum.appendState(dst)
		dst = n.one.count.appendState(dst)
		dst = n.one.squares.appendState(dst)
		dst = n.one.least.appendState(dst)
		dst = n.one.greatest.appendState(dst)
	}
	if n.array {
		dst = binary.AppendUvarint(dst, uint64(len(n.elements)))
		for i := range n.elements {
			dst = n.elements[i].appendState(dst)
		}
	}
	if n.bad != "" {
		dst = appendText(dst, []byte(n.bad))
	}
	if n.alone != "" {
		dst = appendText(dst, []byte(n.alone))
	}
	return dst
}

// mergeState adds the node that follows in a state.
func (n *statsNode) mergeState(r *reader, depth int) {
	if depth > doc.MaxDepth {
		r.fail()
		return
	}
	form := r.byte()
	if form == 0 { // no values
		return
	}
	only := n.merging()
	if form&statsPlain != 0 {
		n.one.sum.mergeState(r)
		n.one.count.mergeState(r)
		n.one.squares.mergeState(r)
		least, greatest := r.scalar(), r.scalar()
		n.bound(&least, &greatest)
	}
	n.uneven = n.uneven || form&statsUneven != 0
	if form&statsArray != 0 {
		count, fresh := r.count(), !n.array
		for i := range count {
			n.element(i, fresh).mergeState(r, depth+1)
		}
		n.uneven = n.uneven || count != len(n.elements)
		n.array = true
	}
	if form&statsBad != 0 {
		n.refuse(string(r.text()))
	}
	if form&statsAlone != 0 {
		if alone := string(r.text()); only {
			n.alone = alone
		}
	}
}

// err returns what is wrong with the values, empty for nothing.
func (n *statsNode) err() string {
	switch {
	case n.alone != "":
		return n.alone
	case n.bad != "":
		return n.bad
	case n.plain && n.array:
		return statsReason + "both"
	case n.uneven:
		return statsReason + "arrays of different lengths"
	}
	for i := range n.elements {
		if reason := n.elements[i].err(); reason != "" {
			return reason
		}
	}
	return ""
}

func (n *statsNode) appendJSON(dst []byte) []byte {
	if !n.array {
		return n.one.appendJSON(dst)
	}
	dst = append(dst, '[')
	for i := range n.elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = n.elements[i].appendJSON(dst)
	}
	return append(dst, ']')
}

func (m *measures) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"sum":`...)
	dst = m.sum.appendJSON(dst)
	dst = append(dst, `,"count":`...)
	dst = m.count.appendJSON(dst)
	dst = append(dst, `,"min":`...)
	dst = m.least.appendJSON(dst)
	dst = append(dst, `,"max":`...)
	dst = m.greatest.appendJSON(dst)
	dst = append(dst, `,"sumsqr":`...)
	dst = m.squares.appendJSON(dst)
	return append(dst, '}')
}
