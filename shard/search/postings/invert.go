package postings

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// MaxTerm is the length in bytes of the longest term; longer ones are left out.
const MaxTerm = 32766

// Inverter makes of documents what an index stores of them. Each document begins with
// Begin or Delete; what is added to it counts only when Keep was called. It belongs to
// one goroutine; the zero value is ready.
type Inverter struct {
	byTerm      map[string]uint32 // a field as in a key, and the term
	terms       []string
	occurrences []occurrence
	byField     map[string]int
	fields      []fieldOfDoc
	touched     []int // fields of the document
	types       map[string]typedField
	newTypes    []string // of the document at hand
	columns     []column
	byColumn    map[string]int
	docs        []docOf
	id          string
	live        uint32 // documents that get a number
	kept        int    // occurrences of the documents before
	values      []value
	stored      []byte
	key         []byte
	size        int
}

// occurrence is one of a term; document is among those that get a number.
type occurrence struct{ term, document, position uint32 }

// fieldOfDoc is a field in one document.
type fieldOfDoc struct {
	name     string
	has      bool   // a term
	terms    uint32 // that count for its length
	boost    float64
	greatest []byte

	docs, sum uint64 // of the documents that were kept: those that have it, and their terms
}

// value is one of a column, of the document at hand.
type value struct {
	kind  Column
	field string
	bytes []byte
}

// column are the entries of documents; their offsets are the numbers of documents.
type column struct {
	kind    Column
	field   string
	entries []byte
}

type docOf struct {
	id      string
	deleted bool
	stored  []byte
}

// Inverted is the input that Writer.Apply adds to an index.
type Inverted struct {
	docs    []docOf
	live    uint32
	columns []column
	types   []typedField   // ascending
	terms   []invertedTerm // ascending
	runs    []byte
}

type invertedTerm struct {
	key string // a field as in a key, and the term
	end int    // of its runs
}

// Begin begins a document. MaxDocs of them may be kept.
func (v *Inverter) Begin(id string) {
	if v.byTerm == nil {
		v.byTerm, v.byField, v.byColumn, v.types = map[string]uint32{}, map[string]int{}, map[string]int{}, map[string]typedField{}
	}
	for _, f := range v.touched {
		of := &v.fields[f]
		of.has, of.terms, of.boost, of.greatest = false, 0, 1, of.greatest[:0]
	}
	v.occurrences = v.occurrences[:v.kept]
	v.dropTypes()
	v.id, v.touched, v.values, v.stored = id, v.touched[:0], v.values[:0], nil
}

// MaxDocs is how many documents an Inverter takes.
const MaxDocs = 1 << columnBits

// Delete says that a document is gone.
func (v *Inverter) Delete(id string) {
	v.docs = append(v.docs, docOf{id: id, deleted: true})
	v.size += docSize + len(id)
}

// Term adds a term of a field. Positions do not descend within a field.
func (v *Inverter) Term(field string, term []byte, position int) {
	if len(term) > MaxTerm {
		return
	}
	v.add(field, term, position).terms++
}

// Value adds a term that does not count for the length of the field.
func (v *Inverter) Value(field string, term []byte, position int) {
	if len(term) <= MaxTerm {
		v.add(field, term, position)
	}
}

// Boost says that terms of a field of the document weigh so many times as much.
func (v *Inverter) Boost(field string, by float64) { v.field(field).boost *= by }

// field returns the field of that name in the document at hand.
func (v *Inverter) field(name string) *fieldOfDoc {
	f, ok := v.byField[name]
	if !ok {
		f = len(v.fields)
		v.byField[name] = f
		v.fields = append(v.fields, fieldOfDoc{name: name, boost: 1})
	}
	of := &v.fields[f]
	if !of.has {
		of.has = true
		v.touched = append(v.touched, f)
	}
	return of
}

func (v *Inverter) add(field string, term []byte, position int) *fieldOfDoc {
	of := v.field(field)
	if bytes.Compare(term, of.greatest) > 0 {
		of.greatest = append(of.greatest[:0], term...)
	}
	v.key = append(appendField(v.key[:0], field), term...)
	t, ok := v.byTerm[string(v.key)]
	if !ok {
		t = uint32(len(v.terms))
		key := string(v.key)
		v.byTerm[key] = t
		v.terms = append(v.terms, key)
		v.size += termSize + len(key)
	}
	v.occurrences = append(v.occurrences, occurrence{t, v.live, uint32(position)})
	v.size += occurrenceSize
	return of
}

// Number adds a number to a field.
func (v *Inverter) Number(field string, number float64) { v.number(Numbers, field, number) }

// NumberFacet adds a number that is counted by ranges to a field.
func (v *Inverter) NumberFacet(field string, number float64) { v.number(NumberFacets, field, number) }

func (v *Inverter) number(kind Column, field string, number float64) {
	v.column(kind, field, binary.BigEndian.AppendUint64(nil, math.Float64bits(number)))
}

// Facet adds a value that is counted to a field.
func (v *Inverter) Facet(field, text string) { v.column(Facets, field, appendField(nil, text)) }

func (v *Inverter) column(kind Column, field string, b []byte) {
	v.values = append(v.values, value{kind, field, b})
	v.size += valueSize + len(b)
}

// Store adds a stored field.
func (v *Inverter) Store(name string, value []byte) {
	v.stored = appendField(v.stored, name)
	v.stored = append(binary.AppendUvarint(v.stored, uint64(len(value))), value...)
	v.size += len(name) + len(value)
}

// What is taken for one of each beside its text, in bytes, about.
const (
	docSize        = 64
	termSize       = 64
	occurrenceSize = 32
	valueSize      = 64
)

// Size returns how much memory was taken, about, with that of the document at hand.
func (v *Inverter) Size() int { return v.size }

// Keep ends the document and keeps it.
func (v *Inverter) Keep() {
	slices.Sort(v.touched)
	for _, f := range v.touched {
		of := &v.fields[f]
		if of.terms > 0 {
			v.column(Lengths, of.name, []byte{LengthByte(float64(of.terms) / (of.boost * of.boost))})
		}
		v.column(Greatest, of.name, append(binary.AppendUvarint(nil, uint64(len(of.greatest))), of.greatest...))
		of.docs++
		of.sum += uint64(of.terms)
	}
	for _, one := range v.values {
		v.key = append(append(v.key[:0], byte(one.kind)), one.field...)
		c, ok := v.byColumn[string(v.key)]
		if !ok {
			c = len(v.columns)
			v.byColumn[string(v.key)] = c
			v.columns = append(v.columns, column{kind: one.kind, field: one.field})
		}
		to := &v.columns[c].entries
		*to = append(binary.BigEndian.AppendUint16(*to, uint16(v.live)), one.bytes...)
	}
	v.docs = append(v.docs, docOf{id: v.id, stored: v.stored})
	v.size += docSize + len(v.id)
	v.live++
	v.newTypes = v.newTypes[:0]
	v.kept = len(v.occurrences)
}

// Finish returns what was kept. The Inverter is not used after that.
func (v *Inverter) Finish() *Inverted {
	v.dropTypes()
	out := &Inverted{docs: v.docs, live: v.live, columns: v.columns, types: v.typed()}
	ends := make([]int, len(v.terms)+1) // of each term among the sorted occurrences, one later
	all := v.occurrences[:v.kept]
	for _, o := range all {
		ends[o.term+1]++
	}
	for t := range v.terms {
		ends[t+1] += ends[t]
	}
	sorted := make([]occurrence, len(all)) // stable: by document and position within a term
	for _, o := range all {
		sorted[ends[o.term]] = o
		ends[o.term]++
	}
	order := make([]uint32, len(v.terms))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(v.terms[a], v.terms[b]) })
	var r run
	var positions []uint32
	lengths := fieldLengths{of: make([]byte, v.live)}
	for _, t := range order {
		from := 0
		if t > 0 {
			from = ends[t-1]
		}
		list := sorted[from:ends[t]]
		if len(list) == 0 {
			continue // of documents that were not kept
		}
		if field, other := lengths.begin([]byte(v.terms[t])); other {
			v.lengths(field, lengths.of)
		}
		for len(list) > 0 {
			document, n := list[0].document, 0
			for positions = positions[:0]; n < len(list) && list[n].document == document; n++ {
				positions = append(positions, list[n].position)
			}
			if list = list[n:]; r.docs == runDocs {
				out.runs = r.append(out.runs, 0)
				r.reset()
			}
			r.add(document, positions, lengths.of[document])
		}
		out.runs = r.append(out.runs, 0)
		r.reset()
		out.terms = append(out.terms, invertedTerm{v.terms[t], len(out.runs)})
	}
	return out
}

// lengths fills in those of a field.
func (v *Inverter) lengths(field string, of []byte) {
	c, ok := v.byColumn[string(rune(Lengths))+field]
	if !ok {
		return
	}
	for rest := v.columns[c].entries; len(rest) > 0; {
		document, value, behind, ok := cutEntry(Lengths, rest)
		if !ok {
			return // it was written by Keep
		}
		of[document], rest = value[0], behind
	}
}

// Docs returns how many documents were kept and deleted.
func (in *Inverted) Docs() int { return len(in.docs) }
