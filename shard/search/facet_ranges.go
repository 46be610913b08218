package search

import (
	"slices"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// ranger counts numbers of a field by ranges. A document counts once for a range, however
// many of its numbers are in it.
type ranger struct {
	column  *postings.Values
	ranges  []NumberRange
	counts  []uint64
	numbers []float64 // of the document at hand
}

func newRanger(s *scan, dialect syntax.Dialect, of *FieldRanges) (*ranger, error) {
	if t, err := s.fieldType(of.Field); err != nil {
		return nil, err
	} else if t != postings.Untyped && t != postings.DoubleType {
		return nil, fault.Newf(fault.BadRequest, "field %s is of type %s: only numbers are counted by ranges", of.Field, t)
	}
	kind := postings.NumberFacets
	if dialect == syntax.Nouveau { // all numbers are facets
		kind = postings.Numbers
	}
	return &ranger{column: s.r.Values(kind, of.Field), ranges: of.Ranges, counts: make([]uint64, len(of.Ranges))}, nil
}

func (c *ranger) collect(n postings.Number, _ matcher) error {
	c.numbers = c.numbers[:0]
	b, ok, err := c.column.Seek(n)
	for ; ok; b, ok, err = c.column.Next() {
		c.numbers = append(c.numbers, postings.DecodeFloat(b))
	}
	if err != nil || len(c.numbers) == 0 {
		return err
	}
	for i := range c.ranges {
		if slices.ContainsFunc(c.numbers, c.ranges[i].holds) {
			c.counts[i]++
		}
	}
	return nil
}

func (r *NumberRange) holds(v float64) bool {
	return (v > r.Lower || r.IncludesLower && v == r.Lower) && (v < r.Upper || r.IncludesUpper && v == r.Upper)
}

func (c *ranger) finish(a *Answer) error {
	a.Ranges = append(a.Ranges, c.counts)
	return nil
}
