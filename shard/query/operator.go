package query

import (
	"strconv"

	"divan/storage/fault"
)

// badArg refuses an argument.
func badArg(name string, arg []byte) *fault.Error {
	return invalid("bad_arg", "Bad argument for operator "+name+": "+term(arg))
}

// newCompare is a comparison with arg.
func newCompare(o op, arg []byte) (*node, error) {
	lit, err := newLiteral(arg)
	return &node{op: o, arg: lit}, err
}

// newOperator checks the argument of an operator that takes no selector.
func newOperator(name string, arg []byte, b *budget) (*node, error) {
	switch name {
	case "$lt":
		return newCompare(opLt, arg)
	case "$lte":
		return newCompare(opLte, arg)
	case "$eq":
		return newCompare(opEq, arg)
	case "$ne":
		return newCompare(opNe, arg)
	case "$gte":
		return newCompare(opGte, arg)
	case "$gt":
		return newCompare(opGt, arg)
	case "$in":
		return newIn(opIn, name, arg, b)
	case "$nin":
		return newIn(opNin, name, arg, b)
	case "$all":
		return newAll(arg, b)
	case "$exists":
		if k := kindOf(arg); k != kindTrue && k != kindFalse {
			return nil, badArg(name, arg)
		}
		return &node{op: opExists, flag: arg[0] == 't', arg: literal{text: arg}}, nil
	case "$type":
		if kindOf(arg) != kindString {
			return nil, badArg(name, arg)
		}
		return &node{op: opType, arg: literal{text: arg}}, nil
	case "$size":
		return newSize(arg)
	case "$mod":
		return newMod(arg)
	case "$text":
		switch kindOf(arg) {
		case kindNull, kindArray, kindObject, kindNone:
			return nil, badArg(name, arg)
		default:
			return &node{op: opDefault, def: append(append([]byte(`{"$text":`), arg...), '}')}, nil
		}
	case "$default":
		return &node{op: opDefault, def: arg}, nil
	case "$where", "$geoWithin", "$geoIntersects", "$near", "$nearSphere", "$within":
		return nil, invalid("not_supported", "Unsupported operator: "+name)
	case "$regex":
		if kindOf(arg) == kindString {
			return newRegex(arg, b)
		}
	case "$beginsWith":
		if kindOf(arg) == kindString {
			return &node{op: opBeginsWith, arg: literal{text: arg}}, nil
		}
	}
	return nil, invalid("invalid_operator", "Invalid operator: "+name)
}

func newIn(o op, name string, arg []byte, b *budget) (*node, error) {
	if kindOf(arg) != kindArray {
		return nil, badArg(name, arg)
	}
	if err := b.take(setMemory); err != nil {
		return nil, err
	}
	set, err := newSet(arg)
	return &node{op: o, set: set, arg: literal{text: arg}}, err
}

func newAll(arg []byte, b *budget) (*node, error) {
	if kindOf(arg) != kindArray {
		return nil, badArg("$all", arg)
	}
	if err := b.take(setMemory); err != nil {
		return nil, err
	}
	arg = Once(arg)
	n := &node{op: opAll, arg: literal{text: arg}, terms: map[string]struct{}{}}
	count := 0
	for e := (elements{text: arg}); e.next(); count++ {
		n.terms[string(e.value)] = struct{}{}
		n.whole = e.value
	}
	if count != 1 || kindOf(n.whole) != kindArray {
		n.whole = nil
	}
	return n, nil
}

func newSize(arg []byte) (*node, error) {
	if !isInteger(arg) || arg[0] == '-' {
		return nil, badArg("$size", arg)
	}
	n := &node{op: opSize, arg: literal{text: arg}}
	var err error
	if n.count, err = strconv.ParseInt(string(arg), 10, 64); err != nil {
		n.count = -1 // more than any array has
	}
	return n, nil
}
