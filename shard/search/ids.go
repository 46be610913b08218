package search

import (
	"bytes"

	"divan/shard/search/postings"
)

// Fields that documents have without an index function.
const (
	idField        = "_id"
	partitionField = "_partition" // in partitioned databases
)

// idSet are documents that were found by their ids, by chunk. It is a node, and a filter.
type idSet struct {
	sets  map[uint32]*postings.Set
	score float64
}

// take adds a document.
func (d *idSet) take(s *scan, n postings.Number) error {
	set := d.sets[n.Chunk()]
	if set == nil {
		if err := s.space.Take(len(set) * 8); err != nil {
			return err
		}
		set = &postings.Set{}
		d.sets[n.Chunk()] = set
	}
	set.Add(n.Offset())
	return nil
}

func (d *idSet) open(s *scan) (matcher, error) {
	if set := d.sets[s.chunk]; set != nil {
		return &setMatcher{d.score, set}, nil
	}
	return &setMatcher{d.score, &s.none}, nil
}

func (d *idSet) add(s *scan, to *postings.Set) error {
	if set := d.sets[s.chunk]; set != nil {
		*to = *set
	}
	return nil
}

// partition finds the documents of a partition. Their ids are next to each other.
func (c *compiler) partition(name string, score float64) (*idSet, error) {
	d, prefix := &idSet{map[uint32]*postings.Set{}, score}, name+":"
	return d, c.scan.eachID(prefix, func(id []byte, n postings.Number) (bool, error) {
		if !bytes.HasPrefix(id, []byte(prefix)) {
			return false, nil
		}
		return true, d.take(c.scan, n)
	})
}

// named finds documents by a term of _id or _partition.
func (c *compiler) named(field, term string, score float64) (*idSet, error) {
	if field == partitionField {
		return c.partition(term, score)
	}
	if err := c.scan.space.Take(nodeBytes + valueBytes); err != nil {
		return nil, err
	}
	d := &idSet{map[uint32]*postings.Set{}, score}
	n, ok, err := c.scan.r.Number(term)
	if ok {
		err = d.take(c.scan, n)
	}
	return d, err
}

// accepted finds documents by terms of _id or _partition that are accepted.
func (c *compiler) accepted(n *termsNode) (*idSet, error) {
	d := &idSet{map[uint32]*postings.Set{}, n.boost}
	return d, c.scan.eachNamed(n.field, n.from, func(term []byte, number postings.Number) (bool, error) {
		v, err := n.accept(term)
		switch {
		case v == accepted && err == nil:
			return true, d.take(c.scan, number)
		default:
			return v != behind, err
		}
	})
}

// eachNamed calls f for the terms of _id or _partition; those of _id ascend from one on.
func (s *scan) eachNamed(field, from string, f func(term []byte, n postings.Number) (bool, error)) error {
	if field == idField {
		return s.eachID(from, f)
	}
	return s.eachID("", func(id []byte, n postings.Number) (bool, error) {
		name, _, ok := bytes.Cut(id, []byte(":"))
		if !ok || string(name) < from {
			return true, nil
		}
		_, err := f(name, n) // partitions are in another order than their ids
		return true, err
	})
}

// eachID is Reader.IDs, as long as the context lasts.
func (s *scan) eachID(from string, f func(id []byte, n postings.Number) (bool, error)) error {
	looked := 0
	return s.r.IDs(from, func(id []byte, n postings.Number) (bool, error) {
		if looked++; looked%checkEvery == 0 {
			if err := s.turn.check(); err != nil {
				return false, err
			}
		}
		return f(id, n)
	})
}

// byID reports whether a field is one that ids are looked up for.
func (c *compiler) byID(field string) bool {
	return field == idField || field == partitionField && c.def.Partitioned
}
