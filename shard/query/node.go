package query

// op is the operation of a node of a selector.
type op uint8

const (
	opField op = iota // kids[0] holds for the value at the path

	// Of other nodes, about the value at hand.
	opAnd
	opOr
	opNot // one kid
	opNor // only within $elemMatch and its like: elsewhere it is pushed down
	opElemMatch
	opAllMatch
	opKeyMapMatch
	opDefault // $text: what a text index has found matches

	// About the value at hand and an argument.
	opLt
	opLte
	opEq
	opNe
	opGte
	opGt
	opIn
	opNin
	opAll
	opExists
	opType
	opSize
	opMod
	opRegex
	opBeginsWith
)

// node is a selector or a part of one.
type node struct {
	op   op
	kids []*node

	// Of opField.
	field string // the path as it is written in the normal form; empty: the value itself
	slot  int    // which top-level member the path starts at, -1: at the value at hand
	path  []step // the rest of the path
	raw   bool   // the field _id: strings below compare byte by byte

	// The argument; which one is set depends on op.
	arg   literal
	set   *set
	terms map[string]struct{} // of opAll, as they are written
	whole []byte              // of opAll: the only term, if it is an array
	flag  bool                // of opExists
	typed bool                // of a comparison by order: only for values of the argument's type
	count int64               // of opSize
	mod   modulus
	regex pattern
	def   []byte // of opDefault: its argument
}

// with returns a copy of n that does something else.
func (n *node) with(o op) *node {
	c := *n
	c.op = o
	return &c
}
