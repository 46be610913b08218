package search

import (
	"slices"
	"strings"

	"divan/shard/search/postings"
	"divan/storage/fault"
)

// counter counts the values of a facet.
type counter struct {
	s      *scan
	column *postings.Values
	known  bool
	labels map[string]*label
}

// label is a value, and the last document that was counted for it: one that has a value
// twice counts once.
type label struct {
	count uint64
	last  postings.Number
}

func newCounter(s *scan, field string) (*counter, error) {
	if t, err := s.fieldType(field); err != nil {
		return nil, err
	} else if t != postings.Untyped && t != postings.StringType {
		return nil, fault.Newf(fault.BadRequest, "field %s is of type %s: only values of type %s are counted", field, t, postings.StringType)
	}
	known, err := s.r.Has(postings.Facets, field)
	return &counter{s: s, column: s.r.Values(postings.Facets, field), known: known, labels: map[string]*label{}}, err
}

func (c *counter) collect(n postings.Number, _ matcher) error {
	if !c.known {
		return nil
	}
	b, ok, err := c.column.Seek(n)
	for ; ok; b, ok, err = c.column.Next() {
		l := c.labels[string(b)]
		if l == nil {
			if err := c.s.space.Take(labelBytes + len(b)); err != nil {
				return err
			}
			l = &label{}
			c.labels[string(b)] = l
		}
		if l.count == 0 || l.last != n {
			l.count, l.last = l.count+1, n
		}
	}
	return err
}

func (c *counter) finish(a *Answer) error {
	out := FieldCounts{Known: c.known, Values: make([]Count, 0, len(c.labels))}
	for value, l := range c.labels {
		out.Values = append(out.Values, Count{value, l.count})
	}
	slices.SortFunc(out.Values, func(a, b Count) int { return strings.Compare(a.Value, b.Value) })
	a.Counts = append(a.Counts, out)
	return nil
}
