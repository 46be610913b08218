package reduce

import (
	"encoding/binary"

	"divan/storage/doc"
)

// sum is _sum. Its state is the number of bytes that went in, and a sumNode.
type sum struct{ limit func() Limit }

// sumReason is CouchDB's text.
const sumReason = "The _sum function requires that map values be numbers, arrays of numbers, or objects. " +
	"Objects cannot be mixed with other data structures. Objects can be arbitrarily nested, provided that the values " +
	"for all fields are themselves numbers, arrays of numbers, or objects."

// Reduce implements Function.
func (f sum) Reduce(dst []byte, rows []Row) ([]byte, error) {
	var total number
	var rest *sumNode // of everything but plain numbers
	in, numbers := 0, 0
	for i := range rows {
		row := &rows[i]
		in += len(row.Key) + len(row.ID) + len(row.Value)
		if s, ok := parseScalar(row.Value); ok {
			total.add(&s)
			numbers++
			continue
		}
		if rest == nil {
			rest = &sumNode{}
		}
		rest.addValue(row.Value)
	}
	return f.appendTotal(dst, in, &total, numbers, rest), nil
}

// Rereduce implements Function.
func (f sum) Rereduce(dst []byte, states [][]byte) ([]byte, error) {
	var total number
	var rest *sumNode
	in, numbers := 0, 0
	for _, state := range states {
		if len(state) == 0 {
			continue
		}
		r := reader{b: state}
		in += int(r.uvarint())
		if len(r.b) > 0 && r.b[0] == sumNumber {
			r.byte()
			total.mergeState(&r)
			numbers++
		} else {
			if rest == nil {
				rest = &sumNode{}
			}
			rest.mergeState(&r, 0)
		}
		if err := r.end(); err != nil {
			return dst, err
		}
	}
	return f.appendTotal(dst, in, &total, numbers, rest), nil
}

// appendTotal appends the state of so many numbers and of the rest, which may be nil.
func (f sum) appendTotal(dst []byte, in int, total *number, numbers int, rest *sumNode) []byte {
	switch {
	case rest != nil && numbers > 0:
		rest.addNumber(total)
	case rest == nil && numbers > 0:
		return total.appendState(append(binary.AppendUvarint(dst, uint64(in)), sumNumber))
	case rest == nil:
		return dst
	}
	return f.appendState(dst, in, rest)
}

// appendState appends the state of something else than a number, within the
// limit.
func (f sum) appendState(dst []byte, in int, node *sumNode) []byte {
	dst = binary.AppendUvarint(dst, uint64(in))
	start := len(dst)
	dst = node.appendState(dst)
	out := len(dst) - start
	if !f.limit().Refused(in, out) || node.thrown != nil {
		return dst
	}
	var failed sumNode
	failed.throw(appendError(nil, OverflowReason(in, out), nil))
	return failed.appendState(dst[:start])
}

// Final implements Function.
func (f sum) Final(dst, state []byte) ([]byte, error) {
	if len(state) == 0 {
		return append(dst, '0'), nil
	}
	r := reader{b: state}
	r.uvarint()
	var node sumNode
	node.mergeState(&r, 0)
	if err := r.end(); err != nil {
		return dst, err
	}
	if e := node.err(true); e != nil {
		return append(dst, e...), nil
	}
	if node.array && len(node.numbers) == 0 {
		return append(dst, "[0]"...), nil // CouchDB begins with 0
	}
	return node.appendJSON(dst), nil
}

// appendError appends the value that stands for an error of a built-in
// function.
func appendError(dst []byte, reason string, cause []byte) []byte {
	dst = append(dst, `{"error":"builtin_reduce_error","reason":`...)
	dst = doc.AppendString(dst, reason)
	if cause != nil {
		dst = append(dst, `,"caused_by":`...)
		dst = append(dst, cause...)
	}
	return append(dst, '}')
}
