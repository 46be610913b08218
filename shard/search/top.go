package search

import (
	"cmp"
	"slices"
	"strings"

	"divan/shard/search/postings"
	"divan/storage/fault"
)

// top keeps the first hits in an order: a heap with the last one first.
type top struct {
	o     *order
	of    *hitParts
	limit int
	after *Position // hits behind this one only; nil: all
	hits  []numbered
	tied  []postings.Number // documents that have the values of the last hit, when there are limit hits
	ties  int               // how many of those there may be
}

// numbered is a hit. Its id is read at the end.
type numbered struct {
	order  []Value
	number postings.Number
	id     string
}

// hitCollector collects the hits of a request without groups.
type hitCollector struct{ top }

func newHitCollector(e *evaluation) (*hitCollector, error) {
	o, err := newOrder(&e.scan, e.req.Sort)
	if err != nil {
		return nil, err
	}
	if e.req.After != nil && len(e.req.After.Order) != len(o.sort) {
		return nil, fault.New(fault.BadRequest, "sort order not compatible with given bookmark")
	}
	return &hitCollector{top{o: o, of: &e.parts, limit: e.req.Limit, after: e.req.After, ties: e.ties}}, nil
}

func (c *hitCollector) collect(n postings.Number, m matcher) error {
	if c.limit <= 0 {
		return nil
	}
	if err := c.o.read(n, m); err != nil {
		return err
	}
	return c.offer(n)
}

func (c *hitCollector) finish(a *Answer) (err error) {
	a.Hits, err = c.sorted()
	return err
}

// offer takes a document whose order was read, if it is among the first ones.
func (t *top) offer(n postings.Number) error {
	if t.after != nil {
		order, err := t.o.compare(n, t.after)
		if err != nil || order <= 0 {
			return err
		}
	}
	full := len(t.hits) == t.limit
	if full {
		if t.limit <= 0 {
			return nil
		}
		switch order := compareValues(t.o.sort, t.o.values, t.hits[0].order); {
		case order > 0:
			return nil
		case order == 0:
			return t.tie(n)
		}
	}
	values, err := t.o.kept(hitBytes)
	if err != nil {
		return err
	}
	hit := numbered{order: values, number: n}
	if !full {
		t.hits = append(t.hits, hit)
		t.up()
		return nil
	}
	last := t.hits[0]
	t.hits[0] = hit
	t.down()
	t.o.free(last.order, hitBytes)
	if compareValues(t.o.sort, last.order, t.hits[0].order) == 0 {
		return t.tie(last.number)
	}
	t.drop()
	return nil
}

// readID reads the id of a hit.
func (t *top) readID(h *numbered) error {
	id, err := t.o.scan.r.ID(h.number)
	if err != nil {
		return err
	}
	h.id = string(id)
	return t.o.scan.space.Take(len(id))
}

// compareOrders compares two hits without their ids.
func (t *top) compareOrders(i, j int) int {
	return compareValues(t.o.sort, t.hits[i].order, t.hits[j].order)
}

// up moves the hit at the end of the heap to its place.
func (t *top) up() {
	for i := len(t.hits) - 1; i > 0; {
		parent := (i - 1) / 2
		if t.compareOrders(i, parent) <= 0 {
			return
		}
		t.hits[i], t.hits[parent] = t.hits[parent], t.hits[i]
		i = parent
	}
}

// down moves the hit at the front of the heap to its place.
func (t *top) down() {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(t.hits) {
			return
		}
		if child+1 < len(t.hits) && t.compareOrders(child+1, child) > 0 {
			child++
		}
		if t.compareOrders(child, i) <= 0 {
			return
		}
		t.hits[i], t.hits[child] = t.hits[child], t.hits[i]
		i = child
	}
}

// sorted returns the hits in their order, with what is stored of them.
func (t *top) sorted() ([]Hit, error) {
	if err := t.settle(); err != nil {
		return nil, err
	}
	for i := range t.hits {
		if err := t.readID(&t.hits[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(t.hits, func(a, b numbered) int {
		return cmp.Or(compareValues(t.o.sort, a.order, b.order), strings.Compare(a.id, b.id))
	})
	out := make([]Hit, len(t.hits))
	for i, h := range t.hits {
		fields, err := t.of.stored.read(h.number)
		if err != nil {
			return nil, err
		}
		out[i] = Hit{Position: Position{h.order, h.id}, Fields: fields}
		if err := t.of.marks.highlight(&out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
