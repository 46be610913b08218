package query

import (
	"strconv"

	"divan/storage/doc"
)

// Append appends the selector in its normal form: every condition explicit,
// fields as dotted paths.
func (s *Selector) Append(dst []byte) []byte {
	if s.root == nil {
		return append(dst, "{}"...)
	}
	return s.root.append(dst)
}

// append appends the text of a node.
func (n *node) append(dst []byte) []byte {
	name := operatorNames[n.op]
	if n.op == opField {
		name = n.field
	}
	dst = append(doc.AppendString(append(dst, '{'), name), ':')
	switch n.op {
	case opAnd, opOr, opNor:
		dst = append(dst, '[')
		for i, kid := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = kid.append(dst)
		}
		dst = append(dst, ']')
	case opField, opNot, opElemMatch, opAllMatch, opKeyMapMatch:
		dst = n.kids[0].append(dst)
	case opDefault:
		dst = append(dst, n.def...)
	case opExists:
		dst = strconv.AppendBool(dst, n.flag)
	default:
		dst = append(dst, n.arg.text...)
	}
	return append(dst, '}')
}

// operatorNames holds the operators as they are written; opField has none.
var operatorNames = [...]string{
	opAnd: "$and", opOr: "$or", opNot: "$not", opNor: "$nor", opElemMatch: "$elemMatch",
	opAllMatch: "$allMatch", opKeyMapMatch: "$keyMapMatch", opDefault: "$default", opLt: "$lt", opLte: "$lte",
	opEq: "$eq", opNe: "$ne", opGte: "$gte", opGt: "$gt", opIn: "$in", opNin: "$nin", opAll: "$all",
	opExists: "$exists", opType: "$type", opSize: "$size", opMod: "$mod", opRegex: "$regex", opBeginsWith: "$beginsWith",
}
