package search

import "divan/shard/search/postings"

// drilldown is a filter: documents with one of the values of a facet.
type drilldown struct {
	field  string
	values map[string]struct{} // empty: any
}

func newDrilldown(d *Drilldown) *drilldown {
	f := &drilldown{field: d.Field, values: make(map[string]struct{}, len(d.Values))}
	for _, v := range d.Values {
		f.values[v] = struct{}{}
	}
	return f
}

func (f *drilldown) add(s *scan, to *postings.Set) error {
	return s.r.EachValue(s.chunk, postings.Facets, f.field, func(offset uint32, value []byte) {
		if _, ok := f.values[string(value)]; ok || len(f.values) == 0 {
			to.Add(offset)
		}
	})
}
