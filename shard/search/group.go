package search

import (
	"cmp"
	"slices"
	"strings"

	"divan/shard/search/postings"
)

// groupOf reads which group a document is in.
type groupOf struct{ column *postings.Values }

// of returns the value of a group; it is valid until the next call.
func (g *groupOf) of(n postings.Number) (by []byte, missing bool, err error) {
	by, ok, err := g.column.Seek(n)
	if !ok {
		by = nil
	}
	return by, !ok, err
}

// newGroupCollector returns what collects the groups of a request, in the pass that it is in.
func newGroupCollector(e *evaluation) (collector, error) {
	g := e.req.Group
	of := groupOf{e.scan.r.Values(postings.Greatest, g.Field)}
	if g.Names != nil {
		o, err := newOrder(&e.scan, e.req.Sort)
		if err != nil {
			return nil, err
		}
		c := &groupHits{groupOf: of, o: o, names: g.Names, tops: make([]top, len(g.Names)), totals: make([]uint64, len(g.Names)), byName: map[string]int{}, missing: -1}
		for i, name := range g.Names {
			c.tops[i] = top{o: o, of: &e.parts, limit: e.req.Limit, ties: e.ties/len(g.Names) + 1}
			if name.Missing {
				c.missing = i
			} else {
				c.byName[name.By] = i
			}
		}
		return c, nil
	}
	o, err := newOrder(&e.scan, g.Sort)
	return &bestGroups{groupOf: of, o: o, limit: g.Limit}, err
}

// bestGroups is the first pass: the best groups in the order of their best hits, those with
// equal ones by name. Others need not be remembered: one of them that gets among the best does
// it by a hit that is better than all that it had.
type bestGroups struct {
	groupOf
	o      *order
	limit  int
	groups []GroupHits // ascending
}

func (c *bestGroups) collect(n postings.Number, m matcher) error {
	if c.limit <= 0 {
		return nil
	}
	by, missing, err := c.of(n)
	if err != nil {
		return err
	}
	if err := c.o.read(n, m); err != nil {
		return err
	}
	if len(c.groups) == c.limit && c.compare(by, missing, &c.groups[c.limit-1]) >= 0 {
		return nil // not among the best, or no better than what its group has
	}
	had := slices.IndexFunc(c.groups, func(g GroupHits) bool { return g.Missing == missing && g.By == string(by) })
	if had >= 0 {
		if compareValues(c.o.sort, c.o.values, c.groups[had].Order) >= 0 {
			return nil
		}
		c.drop(had)
	} else if len(c.groups) == c.limit {
		c.drop(c.limit - 1)
	}
	values, err := c.o.kept(hitBytes + len(by))
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearchFunc(c.groups, struct{}{}, func(g GroupHits, _ struct{}) int { return -c.compare(by, missing, &g) })
	c.groups = slices.Insert(c.groups, at, GroupHits{GroupName: GroupName{string(by), missing}, Order: values})
	return nil
}

func (c *bestGroups) drop(i int) {
	c.o.free(c.groups[i].Order, hitBytes+len(c.groups[i].By))
	c.groups = slices.Delete(c.groups, i, i+1)
}

// compare compares the document at hand, in its group, to another group.
func (c *bestGroups) compare(by []byte, missing bool, g *GroupHits) int {
	if order := compareValues(c.o.sort, c.o.values, g.Order); order != 0 {
		return order
	}
	if missing != g.Missing {
		if missing {
			return -1
		}
		return 1
	}
	return cmp.Compare(string(by), g.By)
}

func (c *bestGroups) finish(a *Answer) error {
	a.Groups = c.groups
	return nil
}

// CompareGroups says which of two groups comes first in the order of Group.Sort: below 0 if
// a does. Equal ones are in the order of their names, behind the one of documents without.
func CompareGroups(sort []Sort, a, b *GroupHits) int {
	if order := compareValues(ordered(sort), a.Order, b.Order); order != 0 {
		return order
	}
	if a.Missing != b.Missing {
		if a.Missing {
			return -1
		}
		return 1
	}
	return strings.Compare(a.By, b.By)
}

// groupHits is the second pass: the hits of named groups.
type groupHits struct {
	groupOf
	o       *order
	names   []GroupName
	byName  map[string]int // in names
	missing int            // -1: it is not asked for
	tops    []top
	totals  []uint64
}

func (c *groupHits) collect(n postings.Number, m matcher) error {
	by, missing, err := c.of(n)
	if err != nil {
		return err
	}
	i, ok := c.byName[string(by)]
	if missing {
		i, ok = c.missing, c.missing >= 0
	}
	if !ok {
		return nil
	}
	if c.totals[i]++; c.tops[i].limit <= 0 {
		return nil
	}
	if err := c.o.read(n, m); err != nil {
		return err
	}
	return c.tops[i].offer(n)
}

func (c *groupHits) finish(a *Answer) error {
	for i, name := range c.names {
		hits, err := c.tops[i].sorted()
		if err != nil {
			return err
		}
		a.Groups = append(a.Groups, GroupHits{GroupName: name, Total: c.totals[i], Hits: hits})
	}
	return nil
}
