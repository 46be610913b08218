package view

import (
	"slices"

	"divan/shard/script"
	"divan/shard/view/reduce"
)

// tree is the rows of one map function. Views with the same one share it.
type tree struct {
	number      int
	source      string
	raw         bool
	partitioned bool
	reducers    []reducer // the different reduce functions of its views
}

// reducer is one reduce function of a tree.
type reducer struct {
	source   string
	function reduce.Function
	script   *script.Reducer // nil: it is built in
}

// place is where a view is found.
type place struct {
	tree    int
	reducer int // -1: it has none
}

// trees arranges the views of a definition.
func (d *Definition) trees() (out []tree, places map[string]place) {
	places = make(map[string]place, len(d.Views))
	for _, v := range d.Views {
		p := place{reducer: -1}
		p.tree = slices.IndexFunc(out, func(t tree) bool { return t.source == v.Map && t.raw == v.Raw })
		if p.tree < 0 {
			p.tree = len(out)
			out = append(out, tree{number: p.tree, source: v.Map, raw: v.Raw, partitioned: d.Partitioned})
		}
		if t := &out[p.tree]; v.Reduce != "" && (script.Speaks(d.Language) || v.Reduce[0] == '_') { // Mango has built-in ones only
			p.reducer = slices.IndexFunc(t.reducers, func(r reducer) bool { return r.source == v.Reduce })
			if p.reducer < 0 {
				p.reducer = len(t.reducers)
				t.reducers = append(t.reducers, reducer{source: v.Reduce})
			}
		}
		places[v.Name] = p
	}
	return out, places
}
