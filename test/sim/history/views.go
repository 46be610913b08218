package history

import (
	"maps"
	"slices"
	"strings"
)

// viewsAreWhole: in the end a view shows on every node every document that is not deleted,
// with the revision that wins on the copies.
func (c *checker) viewsAreWhole() {
	for i := range c.h.Views {
		v := &c.h.Views[i]
		if v.Err != "" {
			c.report("the view of %s through %s: %s", v.DB, v.Node, v.Err)
			continue
		}
		want := map[string]string{}
		for k := range c.h.Copies {
			if c.h.Copies[k].DB == v.DB {
				maps.Copy(want, c.h.Copies[k].winners())
			}
		}
		ids := maps.Clone(want)
		maps.Copy(ids, v.Rows)
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			if want[id] != v.Rows[id] {
				c.report("the view of %s through %s shows %q of %s, the copies have %q", v.DB, v.Node, v.Rows[id], id, want[id])
			}
		}
	}
}

// winners returns the documents that a view shows, with their revisions.
func (k *Copy) winners() map[string]string {
	out := map[string]string{}
	for id, leaves := range k.Docs {
		if len(leaves) > 0 && !leaves[0].Deleted && !strings.HasPrefix(id, "_design/") {
			out[id] = leaves[0].Rev
		}
	}
	return out
}
