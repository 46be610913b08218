package postings

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// FieldType is the type of the fields of a name, in an index where each name has one
// type: that of the first document that has it. Their numbers are stored.
type FieldType byte

// The types.
const (
	Untyped    FieldType = iota
	TextType             // terms of a text
	StringType           // whole values
	DoubleType           // numbers
	StoredType           // stored only
)

// String is the name of a type in errors of _nouveau.
func (t FieldType) String() string {
	if t > StoredType {
		return "UNKNOWN"
	}
	return [...]string{"UNTYPED", "TEXT", "STRING", "DOUBLE", "STORED"}[t]
}

// FieldTotals are the figures that an index with types keeps of a field; dead
// documents count.
type FieldTotals struct {
	Type  FieldType
	Docs  uint64 // that have a term of it
	Terms uint64 // of all of them that count for lengths
}

// WrongType says that a document has a field of another type than the index.
type WrongType struct {
	ID, Field string
	Type, Was FieldType // of the document, of the index
}

// Error implements error.
func (e *WrongType) Error() string {
	return fmt.Sprintf("field %s is of type %s not %s", e.Field, e.Type, e.Was)
}

// typedField is a field as the documents of an Inverter have it.
type typedField struct {
	FieldTotals
	name string
	id   string // of the first document
}

// Type says of which type a field of the document is. The error is a *WrongType: an
// earlier one said otherwise.
func (v *Inverter) Type(field string, t FieldType) error {
	was, ok := v.types[field]
	switch {
	case !ok:
		v.types[field] = typedField{FieldTotals: FieldTotals{Type: t}, name: field, id: v.id}
		v.newTypes = append(v.newTypes, field)
		v.size += termSize + len(field)
	case was.Type != t:
		return &WrongType{v.id, field, t, was.Type}
	}
	return nil
}

// dropTypes forgets what a document that was not kept has said first.
func (v *Inverter) dropTypes() {
	for _, field := range v.newTypes {
		delete(v.types, field)
	}
	v.newTypes = v.newTypes[:0]
}

// typed returns the fields that have a type, with what the documents that were kept have of
// them.
func (v *Inverter) typed() (out []typedField) {
	for name, f := range v.types {
		if i, ok := v.byField[name]; ok {
			f.Docs, f.Terms = v.fields[i].docs, v.fields[i].sum
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b typedField) int { return strings.Compare(a.name, b.name) })
	return out
}

func (t FieldTotals) append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, byte(t.Type)), t.Docs)
	return binary.AppendUvarint(dst, t.Terms)
}

// readField returns the totals of a field; of type Untyped when there are none.
func readField(from getter, key []byte) (t FieldTotals, err error) {
	var buf [32]byte
	b, ok, err := from.Get(buf[:0], key)
	if err != nil || !ok {
		return t, err
	}
	if len(b) == 0 || b[0] == byte(Untyped) || b[0] > byte(StoredType) {
		return t, errDamaged()
	}
	t.Type, b = FieldType(b[0]), b[1:]
	for _, to := range [...]*uint64{&t.Docs, &t.Terms} {
		if *to, b, ok = cutUvarint(b, math.MaxInt64); !ok {
			return t, errDamaged()
		}
	}
	if len(b) > 0 {
		return t, errDamaged()
	}
	return t, nil
}

// Field returns the totals of a field; of type Untyped when it has none.
func (r *Reader) Field(name string) (FieldTotals, error) {
	r.key = appendFieldKey(r.key[:0], name)
	return readField(r.snap, r.key)
}

// check reads what the index knows of fields. The error is a *WrongType if a document
// says otherwise.
func (w *Writer) check(in *Inverted) error {
	for i := range in.types {
		f := &in.types[i]
		have, ok := w.fields[f.name]
		if !ok {
			w.key = appendFieldKey(w.key[:0], f.name)
			var err error
			if have, err = readField(w.x, w.key); err != nil {
				return err
			}
			w.fields[f.name] = have
		}
		if have.Type != Untyped && have.Type != f.Type {
			return &WrongType{f.id, f.name, f.Type, have.Type}
		}
	}
	return nil
}
