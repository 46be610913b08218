package search

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"divan/shard/search/postings"
	"divan/storage/fault"
)

// Compare says which of two hits comes first in an order, that of a request or of its
// groups: below 0 if a does. Equal values leave it to the ids.
func Compare(sort []Sort, a, b *Position) int {
	return cmp.Or(compareValues(ordered(sort), a.Order, b.Order), strings.Compare(a.ID, b.ID))
}

// Distinct returns the parts of an order that may decide: of parts with the same values the first
// one. from tells for each part of the order which of them has its values.
func Distinct(order []Sort) (parts []Sort, from []int, err error) {
	if len(order) > MaxParts {
		return nil, nil, ErrParts(MaxParts)
	}
	from, known := make([]int, len(order)), make(map[Sort]int, len(order))
	for i, s := range order {
		s.Descending = false
		at, again := known[s]
		if !again {
			at = len(parts)
			known[s], parts = at, append(parts, order[i])
		}
		from[i] = at
	}
	return parts, from, nil
}

// ordered is an order without its default.
func ordered(sort []Sort) []Sort {
	if len(sort) == 0 {
		return []Sort{{By: ByScore, Descending: true}}
	}
	return sort
}

// compareValues compares the values of two hits.
func compareValues(sort []Sort, a, b []Value) int {
	for i := range sort {
		order := compareValue(&sort[i], &a[i], &b[i])
		switch {
		case order == 0:
		case sort[i].Descending:
			return -order
		default:
			return order
		}
	}
	return 0
}

func compareValue(s *Sort, a, b *Value) int {
	by := s.By
	if by == ByField {
		x, y := fieldOrder(a, b), fieldOrder(b, a)
		if x != y { // copies disagree: numbers first
			return cmp.Compare(x, y)
		}
		by = x
	}
	switch by {
	case ByID:
		return strings.Compare(a.Text, b.Text)
	case ByString:
		none := a.missing()
		if none != b.missing() {
			if none {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Text, b.Text)
	default:
		return cmp.Compare(a.Number, b.Number)
	}
}

// fieldOrder says how a value of ByField is compared to another one: where no document has the
// field as if it were missing there, which of numbers is 0.
func fieldOrder(v, other *Value) SortBy {
	kind := v.Kind
	if kind == ByField {
		kind = other.Kind
	}
	if kind == ByString {
		return ByString
	}
	return ByNumber
}

// missing reports whether there is no term: the document has none, or none has.
func (v *Value) missing() bool { return v.Missing || v.Kind == ByField }

// order reads what hits are ordered by.
type order struct {
	scan   *scan
	sort   []Sort
	parts  []orderPart
	values []Value // of the document at hand
}

// orderPart is where the values of a part come from.
type orderPart struct {
	by       SortBy // not ByField, if some document has the field
	of       *postings.Values
	latitude *postings.Values // of ByDistance
}

func newOrder(s *scan, sort []Sort) (*order, error) {
	o := &order{scan: s, sort: ordered(sort)}
	o.parts, o.values = make([]orderPart, len(o.sort)), make([]Value, len(o.sort))
	for i := range o.sort {
		if err := o.part(&o.sort[i], &o.parts[i]); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// part finds out where the values of a part are.
func (o *order) part(s *Sort, p *orderPart) (err error) {
	r := o.scan.r
	p.by = s.By
	if s.By == ByField {
		if p.by, err = o.scan.sortable(s.Field); err != nil {
			return err
		}
	}
	switch {
	case p.by == ByString && s.Field == idField:
		p.by = ByID
	case p.by == ByString:
		p.of = r.Values(postings.Greatest, s.Field)
	case p.by == ByDistance:
		p.of, p.latitude = r.Values(postings.Numbers, s.Field), r.Values(postings.Numbers, s.LatitudeField)
	case p.by == ByNumber:
		p.of = r.Values(postings.Numbers, s.Field)
		if numeric, err := r.Has(postings.Numbers, s.Field); numeric || err != nil {
			return err
		}
		if words, err := r.Has(postings.Greatest, s.Field); words || err != nil {
			return cmp.Or(err, error(fault.New(fault.BadRequest, "cannot sort string field as numeric field")))
		}
	}
	return nil
}

// sortable says what a field of _nouveau is ordered by.
func (s *scan) sortable(field string) (SortBy, error) {
	if field == idField {
		return ByString, nil
	}
	t, err := s.fieldType(field)
	switch t {
	case postings.DoubleType:
		return ByNumber, err
	case postings.StringType:
		return ByString, err
	case postings.Untyped:
		return ByField, err
	default:
		return 0, fault.New(fault.BadRequest, "can't sort on field "+field)
	}
}

// read reads what a document is ordered by.
func (o *order) read(n postings.Number, m matcher) error {
	for i := range o.parts {
		p, v := &o.parts[i], &o.values[i]
		*v = Value{}
		if o.sort[i].By == ByField {
			if v.Kind = p.by; p.by == ByID {
				v.Kind = ByString
			}
		}
		var err error
		switch p.by {
		case ByScore:
			v.Number = finite(m.score())
		case ByID:
			var id []byte
			id, err = o.scan.r.ID(n)
			v.Text = string(id)
		case ByNumber:
			v.Number, _, err = greatestNumberOf(p.of, n)
		case ByDistance:
			v.Number, err = o.distance(p, &o.sort[i], n)
			if math.IsNaN(v.Number) { // of coordinates that are no degrees
				v.Number = 0
			}
		case ByString:
			var b []byte
			var ok bool
			if b, ok, err = p.of.Seek(n); ok {
				v.Text = string(b)
			}
			v.Missing = !ok
		default:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finite is a score as it is given out: in single precision, so that sums in another order are
// the same, and a number that JSON has, however large the boosts of a query.
func finite(score float64) float64 {
	if math.IsNaN(score) {
		return 0
	}
	return float64(float32(min(score, math.MaxFloat32)))
}

// greatestNumberOf reads the greatest number that a document has in a column; 0 if none.
func greatestNumberOf(column *postings.Values, n postings.Number) (number float64, ok bool, err error) {
	b, more, err := column.Seek(n)
	for ; more; b, more, err = column.Next() {
		if v := postings.DecodeFloat(b); !ok || v > number {
			number, ok = v, true
		}
	}
	return number, ok, err
}

// compare compares the document at hand to a position. Its id is read only if it has to be.
func (o *order) compare(n postings.Number, p *Position) (int, error) {
	if order := compareValues(o.sort, o.values, p.Order); order != 0 {
		return order, nil
	}
	return o.compareID(n, p.ID)
}

// compareID compares the id of a document to another one.
func (o *order) compareID(n postings.Number, with string) (int, error) {
	id, err := o.scan.r.ID(n)
	return cmp.Compare(string(id), with), err
}

// kept returns the values of the document at hand, and takes space for them.
func (o *order) kept(beside int) ([]Value, error) {
	bytes := beside
	for i := range o.values {
		bytes += valueBytes + len(o.values[i].Text)
	}
	return slices.Clone(o.values), o.scan.space.Take(bytes)
}

// free gives back what kept took.
func (o *order) free(values []Value, beside int) {
	for i := range values {
		beside += valueBytes + len(values[i].Text)
	}
	o.scan.space.Give(beside)
}
