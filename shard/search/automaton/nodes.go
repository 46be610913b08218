package automaton

import (
	"encoding/binary"
	"slices"
)

// kind is the kind of a node.
type kind uint8

const (
	nothing kind = iota // no string
	emptyString
	characters
	concatenation
	union
	intersection
	complement
	repetition
)

// node is an expression: one for each that is written alike.
type node struct {
	kind     kind
	nullable bool    // the empty string matches
	parts    []int32 // of characters: classes, ascending; of a concatenation: two; of a union or an intersection: ascending
	min, max int32   // of a repetition; max -1: any number
}

// The first nodes.
const (
	nothingNode int32 = iota
	emptyNode
	anyNode // any string
)

// nodes are expressions. When there are more than maxNodes, full is set, and what is
// returned means nothing.
type nodes struct {
	list    []node
	byID    map[string]int32
	classes int // of characters
	size    int // of all parts
	full    bool
	key     []byte
}

// Bounds of the nodes of a Matcher.
const (
	maxNodes = 20_000
	maxParts = 200_000
)

func newNodes(classes int) *nodes {
	n := &nodes{byID: map[string]int32{}, classes: classes}
	n.intern(node{kind: nothing})
	n.intern(node{kind: emptyString, nullable: true})
	n.intern(node{kind: complement, nullable: true, parts: []int32{nothingNode}})
	return n
}

// intern returns the number of a node.
func (n *nodes) intern(x node) int32 {
	n.key = append(n.key[:0], byte(x.kind))
	n.key = binary.AppendVarint(binary.AppendVarint(n.key, int64(x.min)), int64(x.max))
	for _, p := range x.parts {
		n.key = binary.AppendUvarint(n.key, uint64(p))
	}
	if id, ok := n.byID[string(n.key)]; ok {
		return id
	}
	if n.full = n.full || len(n.list) >= maxNodes || n.size > maxParts; n.full {
		return nothingNode
	}
	id := int32(len(n.list))
	n.list, n.size = append(n.list, x), n.size+len(x.parts)
	n.byID[string(n.key)] = id
	return id
}

func (n *nodes) nullable(id int32) bool { return n.list[id].nullable }

func (n *nodes) characters(classes []int32) int32 {
	if len(classes) == 0 {
		return nothingNode
	}
	return n.intern(node{kind: characters, parts: classes})
}

// concat is a behind b; the first part of a concatenation is none itself.
func (n *nodes) concat(a, b int32) int32 {
	switch {
	case a == nothingNode || b == nothingNode:
		return nothingNode
	case a == emptyNode:
		return b
	case b == emptyNode:
		return a
	case n.list[a].kind == concatenation:
		first, rest := n.list[a].parts[0], n.list[a].parts[1]
		return n.concat(first, n.concat(rest, b))
	}
	return n.intern(node{kind: concatenation, nullable: n.nullable(a) && n.nullable(b), parts: []int32{a, b}})
}

// some is the union or intersection of parts, which it may change.
func (n *nodes) some(k kind, parts []int32) int32 {
	neutral, absorbing := nothingNode, anyNode
	if k == intersection {
		neutral, absorbing = anyNode, nothingNode
	}
	for i := 0; i < len(parts); i++ {
		if x := &n.list[parts[i]]; x.kind == k {
			parts = append(parts, x.parts...)
			parts[i] = neutral
		}
	}
	parts = slices.DeleteFunc(parts, func(p int32) bool { return p == neutral })
	slices.Sort(parts)
	parts = slices.Compact(parts)
	switch {
	case slices.Contains(parts, absorbing):
		return absorbing
	case len(parts) == 0:
		return neutral
	case len(parts) == 1:
		return parts[0]
	}
	nullable := k == intersection
	for _, p := range parts {
		if n.nullable(p) != nullable {
			nullable = !nullable
			break
		}
	}
	return n.intern(node{kind: k, nullable: nullable, parts: parts})
}

func (n *nodes) not(a int32) int32 {
	if n.list[a].kind == complement {
		return n.list[a].parts[0]
	}
	return n.intern(node{kind: complement, nullable: !n.nullable(a), parts: []int32{a}})
}

func (n *nodes) repeat(a, least, most int32) int32 {
	switch {
	case most == 0 || a == emptyNode:
		return emptyNode
	case a == nothingNode && least > 0:
		return nothingNode
	case a == nothingNode:
		return emptyNode
	case least == 1 && most == 1:
		return a
	case n.nullable(a):
		least = 0
	}
	x := &n.list[a]
	if x.kind == repetition && x.min == 0 && x.max < 0 {
		return a
	}
	if x.kind == characters && len(x.parts) == n.classes && least == 0 && most < 0 {
		return anyNode
	}
	return n.intern(node{kind: repetition, nullable: least == 0, parts: []int32{a}, min: least, max: most})
}
