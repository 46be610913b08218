package search

import (
	"cmp"
	"slices"
	"strings"

	"divan/shard/search/postings"
	"divan/storage/fault"
)

// top keeps the first hits in the order of a request: a heap with the last one first.
type top struct {
	e       *evaluation
	sort    []Sort
	columns []*postings.Values // by part of the order; nil: it has none
	hits    []numbered
	order   []Value // of the document at hand
}

type numbered struct {
	Position
	number postings.Number
}

func newTop(e *evaluation) (*top, error) {
	t := &top{e: e, sort: e.req.Sort}
	if len(t.sort) == 0 {
		t.sort = []Sort{{By: ByScore, Descending: true}}
	}
	t.columns, t.order = make([]*postings.Values, len(t.sort)), make([]Value, len(t.sort))
	for i, s := range t.sort {
		switch s.By {
		case ByNumber:
			numeric, err := e.r.Has(postings.Numbers, s.Field)
			if err != nil {
				return nil, err
			}
			strings, err := e.r.Has(postings.Greatest, s.Field)
			if err != nil {
				return nil, err
			}
			if strings && !numeric {
				return nil, fault.New(fault.BadRequest, "cannot sort string field as numeric field")
			}
			t.columns[i] = e.r.Values(postings.Numbers, s.Field)
		case ByString:
			t.columns[i] = e.r.Values(postings.Greatest, s.Field)
		default:
		}
	}
	if e.req.After != nil && len(e.req.After.Order) != len(t.sort) {
		return nil, fault.New(fault.BadRequest, "sort order not compatible with given bookmark")
	}
	return t, nil
}

// offer takes a document that matches, if it is among the first ones.
func (t *top) offer(n postings.Number, m matcher) error {
	if t.e.req.Limit <= 0 {
		return nil
	}
	if err := t.values(n, m); err != nil {
		return err
	}
	if after := t.e.req.After; after != nil {
		order, err := t.compare(n, after)
		if err != nil || order <= 0 {
			return err
		}
	}
	if len(t.hits) == t.e.req.Limit {
		order, err := t.compare(n, &t.hits[0].Position)
		if err != nil || order >= 0 {
			return err
		}
	}
	id, err := t.e.r.ID(n)
	if err != nil {
		return err
	}
	hit := numbered{Position{slices.Clone(t.order), string(id)}, n}
	if len(t.hits) < t.e.req.Limit {
		t.hits = append(t.hits, hit)
		t.up()
		return nil
	}
	t.hits[0] = hit
	t.down()
	return nil
}

// values reads what the document at hand is ordered by.
func (t *top) values(n postings.Number, m matcher) error {
	for i, s := range t.sort {
		v := Value{}
		switch s.By {
		case ByScore:
			v.Number = float64(float32(m.score())) // sums in another order are the same
		case ByID:
			id, err := t.e.r.ID(n)
			if err != nil {
				return err
			}
			v.Text = string(id)
		case ByNumber:
			b, ok, err := t.columns[i].Seek(n)
			for first := true; ok; b, ok, err = t.columns[i].Next() {
				if number := postings.DecodeFloat(b); first || number > v.Number {
					v.Number, first = number, false
				}
			}
			if err != nil {
				return err
			}
		case ByString:
			b, ok, err := t.columns[i].Seek(n)
			if err != nil {
				return err
			}
			v.Text, v.Missing = string(b), !ok
			if !ok {
				v.Text = ""
			}
		}
		t.order[i] = v
	}
	return nil
}

// compare compares the document at hand to a position. Its id is read only if it has to be.
func (t *top) compare(n postings.Number, p *Position) (int, error) {
	if order := t.compareOrder(t.order, p.Order); order != 0 {
		return order, nil
	}
	id, err := t.e.r.ID(n)
	return cmp.Compare(string(id), p.ID), err
}

// compareOrder compares the values of two documents.
func (t *top) compareOrder(a, b []Value) int {
	for i, s := range t.sort {
		var order int
		switch {
		case s.By == ByString && a[i].Missing != b[i].Missing:
			if order = 1; a[i].Missing {
				order = -1
			}
		case s.By == ByString || s.By == ByID:
			order = strings.Compare(a[i].Text, b[i].Text)
		default:
			order = cmp.Compare(a[i].Number, b[i].Number)
		}
		switch {
		case order == 0:
		case s.Descending:
			return -order
		default:
			return order
		}
	}
	return 0
}

func (t *top) compareHits(a, b *numbered) int {
	return cmp.Or(t.compareOrder(a.Order, b.Order), strings.Compare(a.ID, b.ID))
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

// finish returns the hits in their order, with what is stored of them.
func (t *top) finish() ([]Hit, error) {
	slices.SortFunc(t.hits, func(a, b numbered) int { return t.compareHits(&a, &b) })
	out := make([]Hit, len(t.hits))
	for i, h := range t.hits {
		fields, err := t.e.r.Stored(h.number)
		if err != nil {
			return nil, err
		}
		out[i] = Hit{h.Position, fields}
	}
	return out, nil
}
