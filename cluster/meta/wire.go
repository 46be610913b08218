package meta

import (
	"fmt"
	"math"
	"unique"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message: a number or bytes, by its wire type.
type field struct {
	num    int // 0: none that has a meaning
	number uint64
	bytes  []byte // aliases the message
}

func (f field) text() string { return string(f.bytes) }

// shared returns a text that many messages repeat as one string.
func (f field) shared() string { return unique.Make(string(f.bytes)).Value() }

func (f field) int() int { return int(min(f.number, math.MaxInt64)) }

func (f field) intPointer() *int {
	n := f.int()
	return &n
}

// eachField calls fn for each field of a message. Fields of wire types that
// are not in use are skipped, as unknown numbers are by fn.
func eachField(b []byte, fn func(field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", errMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		f := field{num: int(num)}
		switch typ {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			f.num = 0 // no field has this number
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", errMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

// appendText leaves an empty text out.
func appendText(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// appendNumber leaves zero out.
func appendNumber(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

// appendOptional keeps zero apart from absence.
func appendOptional(b []byte, num protowire.Number, v *int) []byte {
	if v == nil {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(*v))
}

// takeNumber cuts a varint off b. The rest is nil when there is none, and
// stays nil.
func takeNumber(b []byte) (uint64, []byte) {
	v, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, nil
	}
	return v, b[n:]
}
