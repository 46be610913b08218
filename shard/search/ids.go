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
func (s *idSet) take(e *evaluation, n postings.Number) error {
	set := s.sets[n.Chunk()]
	if set == nil {
		if err := e.room.Take(len(set) * 8); err != nil {
			return err
		}
		set = &postings.Set{}
		s.sets[n.Chunk()] = set
	}
	set.Add(n.Offset())
	return nil
}

func (s *idSet) open(e *evaluation) (matcher, error) {
	if set := s.sets[e.chunk]; set != nil {
		return &setMatcher{s.score, set}, nil
	}
	return &setMatcher{s.score, &e.none}, nil
}

func (s *idSet) add(e *evaluation, to *postings.Set) error {
	if set := s.sets[e.chunk]; set != nil {
		*to = *set
	}
	return nil
}

// partition finds the documents of a partition. Their ids are next to each other.
func (e *evaluation) partition(name string, score float64) (*idSet, error) {
	s, prefix := &idSet{map[uint32]*postings.Set{}, score}, name+":"
	return s, e.eachID(prefix, func(id []byte, n postings.Number) (bool, error) {
		if !bytes.HasPrefix(id, []byte(prefix)) {
			return false, nil
		}
		return true, s.take(e, n)
	})
}

// named finds documents by a term of _id or _partition.
func (e *evaluation) named(field, term string, score float64) (*idSet, error) {
	if field == partitionField {
		return e.partition(term, score)
	}
	if err := e.room.Take(nodeBytes + valueBytes); err != nil {
		return nil, err
	}
	s := &idSet{map[uint32]*postings.Set{}, score}
	n, ok, err := e.r.Number(term)
	if ok {
		err = s.take(e, n)
	}
	return s, err
}

// accepted finds documents by terms of _id or _partition that are accepted.
func (e *evaluation) accepted(n *termsNode) (*idSet, error) {
	s := &idSet{map[uint32]*postings.Set{}, n.boost}
	return s, e.eachNamed(n.field, n.from, func(term []byte, number postings.Number) (bool, error) {
		v, err := n.accept(term)
		switch {
		case v == accepted && err == nil:
			return true, s.take(e, number)
		default:
			return v != behind, err
		}
	})
}

// eachNamed calls f for the terms of _id or _partition; those of _id ascend from one on.
func (e *evaluation) eachNamed(field, from string, f func(term []byte, n postings.Number) (bool, error)) error {
	if field == idField {
		return e.eachID(from, f)
	}
	return e.eachID("", func(id []byte, n postings.Number) (bool, error) {
		name, _, ok := bytes.Cut(id, []byte(":"))
		if !ok || string(name) < from {
			return true, nil
		}
		_, err := f(name, n) // partitions are in another order than their ids
		return true, err
	})
}

// eachID is Reader.IDs, as long as the context lasts.
func (e *evaluation) eachID(from string, f func(id []byte, n postings.Number) (bool, error)) error {
	looked := 0
	return e.r.IDs(from, func(id []byte, n postings.Number) (bool, error) {
		if looked++; looked%checkEvery == 0 {
			if err := e.turn.check(); err != nil {
				return false, err
			}
		}
		return f(id, n)
	})
}

// byID reports whether a field is one that ids are looked up for.
func (e *evaluation) byID(field string) bool {
	return field == idField || field == partitionField && e.def.Partitioned
}
