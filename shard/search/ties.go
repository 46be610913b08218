package search

import (
	"bytes"
	"slices"

	"divan/shard/search/postings"
)

// tiesAtOnce is how many documents with the values of the last hit wait for their ids to
// decide: one among many is found sooner in the order of ids than by reading the id of each.
const (
	tiesAtOnce  = 1 << 16
	numberBytes = 8
)

// walked is how many ids can be walked over, about, in the time of one look at a block of them.
const walked = 8

// tie notes a document with the values of the last hit, of all hits that there may be.
func (t *top) tie(n postings.Number) error {
	t.tied = append(t.tied, n)
	if err := t.o.scan.space.Take(numberBytes); err != nil {
		return err
	}
	if len(t.tied) < t.ties {
		return nil
	}
	return t.settle()
}

// drop forgets the documents that tie.
func (t *top) drop() {
	t.o.scan.space.Give(numberBytes * len(t.tied))
	t.tied = t.tied[:0]
}

// settle keeps of the hits with the last values, and of what ties with them, those with the
// first ids.
func (t *top) settle() error {
	if len(t.tied) == 0 {
		return nil
	}
	last := t.hits[0].order
	candidates, places := slices.Clone(t.tied), []int(nil)
	for i := range t.hits {
		if compareValues(t.o.sort, t.hits[i].order, last) == 0 {
			candidates, places = append(candidates, t.hits[i].number), append(places, i)
		}
	}
	t.drop()
	slices.Sort(candidates)
	first, err := t.walkIDs(candidates, len(places), last)
	if err != nil {
		return err
	}
	if len(first) < len(places) {
		if first, err = t.readIDs(candidates, len(places)); err != nil {
			return err
		}
	}
	for i, n := range first {
		t.hits[places[i]].number = n
	}
	return nil
}

// walkIDs looks for so many of the candidates, which ascend, in the order of ids, unless it is
// expected to cost more than to read the ids of all. It gives up when it has cost as much.
func (t *top) walkIDs(candidates []postings.Number, most int, values []Value) (out []postings.Number, err error) {
	s, n := t.o.scan, uint64(len(candidates))
	left := walked * min(n, s.versions/postings.IDsAtOnce+1) // that is walked over
	if 2*uint64(most)*s.r.Live > left*n {
		return nil, nil
	}
	from := ""
	if t.after != nil && compareValues(t.o.sort, t.after.Order, values) == 0 {
		from = t.after.ID
	}
	err = s.eachID(from, func(_ []byte, n postings.Number) (bool, error) {
		if _, ok := slices.BinarySearch(candidates, n); ok {
			out = append(out, n)
		}
		left--
		return left > 0 && len(out) < most, nil
	})
	return out, err
}

// readIDs returns so many of the candidates, those with the first ids.
func (t *top) readIDs(candidates []postings.Number, most int) (out []postings.Number, err error) {
	var ids [][]byte // of out, ascending
	for i, n := range candidates {
		if (i+1)%checkEvery == 0 {
			if err := t.o.scan.turn.check(); err != nil {
				return nil, err
			}
		}
		id, err := t.o.scan.r.ID(n)
		if err != nil {
			return nil, err
		}
		if len(out) == most {
			if bytes.Compare(id, ids[most-1]) >= 0 {
				continue
			}
			out, ids = out[:most-1], ids[:most-1]
		}
		at, _ := slices.BinarySearchFunc(ids, id, bytes.Compare)
		out, ids = slices.Insert(out, at, n), slices.Insert(ids, at, bytes.Clone(id))
	}
	return out, nil
}
