package search

import (
	"slices"
	"strings"

	"divan/shard/search/postings"
	"divan/storage/fault"
)

// top keeps the first hits in an order: a heap with the last one first.
type top struct {
	o     *order
	limit int
	after *Position // hits behind this one only; nil: all
	hits  []numbered
	err   error // of what is read to compare hits
}

// numbered is a hit. Its id is read when another one has the same order, or at the end.
type numbered struct {
	order  []Value
	number postings.Number
	id     string
	known  bool
}

// hitCollector collects the hits of a request without groups.
type hitCollector struct{ top }

func newHitCollector(e *evaluation) (*hitCollector, error) {
	o, err := newOrder(e, e.req.Sort)
	if err != nil {
		return nil, err
	}
	if e.req.After != nil && len(e.req.After.Order) != len(o.sort) {
		return nil, fault.New(fault.BadRequest, "sort order not compatible with given bookmark")
	}
	return &hitCollector{top{o: o, limit: e.req.Limit, after: e.req.After}}, nil
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
		order := compareValues(t.o.sort, t.o.values, t.hits[0].order)
		if order == 0 {
			id, err := t.id(&t.hits[0])
			if err != nil {
				return err
			}
			if order, err = t.o.compareID(n, id); err != nil {
				return err
			}
		}
		if order >= 0 {
			return nil
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
		return t.err
	}
	t.o.free(t.hits[0].order, hitBytes+len(t.hits[0].id))
	t.hits[0] = hit
	t.down()
	return t.err
}

// id returns the id of a hit.
func (t *top) id(h *numbered) (string, error) {
	if !h.known {
		id, err := t.o.e.r.ID(h.number)
		if err != nil {
			return "", err
		}
		h.id, h.known = string(id), true
		if err := t.o.e.room.take(len(id)); err != nil {
			return "", err
		}
	}
	return h.id, nil
}

// compareHits compares two hits. After an error it means nothing.
func (t *top) compareHits(a, b *numbered) int {
	if order := compareValues(t.o.sort, a.order, b.order); order != 0 {
		return order
	}
	x, err := t.id(a)
	if err != nil {
		t.err = err
		return 0
	}
	y, err := t.id(b)
	if err != nil {
		t.err = err
	}
	return strings.Compare(x, y)
}

// up moves the hit at the end of the heap to its place.
func (t *top) up() {
	for i := len(t.hits) - 1; i > 0; {
		parent := (i - 1) / 2
		if t.compareHits(&t.hits[i], &t.hits[parent]) <= 0 {
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
		if child+1 < len(t.hits) && t.compareHits(&t.hits[child+1], &t.hits[child]) > 0 {
			child++
		}
		if t.compareHits(&t.hits[child], &t.hits[i]) <= 0 {
			return
		}
		t.hits[i], t.hits[child] = t.hits[child], t.hits[i]
		i = child
	}
}

// sorted returns the hits in their order, with what is stored of them.
func (t *top) sorted() ([]Hit, error) {
	for i := range t.hits {
		if _, err := t.id(&t.hits[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(t.hits, func(a, b numbered) int { return t.compareHits(&a, &b) })
	out := make([]Hit, len(t.hits))
	for i, h := range t.hits {
		fields, err := t.o.e.stored(h.number)
		if err != nil {
			return nil, err
		}
		out[i] = Hit{Position: Position{h.order, h.id}, Fields: fields}
		if err := t.o.e.highlight(&out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
