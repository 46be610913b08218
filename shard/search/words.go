package search

import (
	"cmp"

	"divan/shard/search/postings"
)

// word is a term of a query. All clauses that have it share its list, which is read once.
type word struct {
	field string
	term  []byte
	docs  int // that have it, dead ones too

	open  bool // list is that of chunk
	chunk uint32
	list  postings.Held
}

// word returns a term of a field, and how many documents have it. Each term is looked for once,
// and many of them in turns with other queries.
func (s *scan) word(field string, term []byte) (*word, error) {
	key := fieldTerm{field, string(term)}
	if w := s.known[key]; w != nil {
		return w, nil
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if (len(s.known)+1)%shortTerms == 0 {
		if err := s.turn.check(); err != nil {
			return nil, err
		}
	}
	if err := s.space.Take(wordBytes + len(term)); err != nil {
		return nil, err
	}
	w := &word{field: field, term: term}
	s.known[key] = w
	for chunk := range s.r.Chunks() {
		n, err := s.docs(w, chunk)
		if err != nil {
			return nil, err
		}
		w.docs += n
	}
	return w, nil
}

// docs counts the documents of the list of a word in a chunk. That of the first chunk is kept, which
// is the one that is looked at first.
func (s *scan) docs(w *word, chunk uint32) (int, error) {
	if !w.open {
		if err := s.openList(w, chunk); err != nil {
			return 0, err
		}
		return postings.Docs(w.list.Bytes)
	}
	list, err := s.r.List(chunk, w.field, w.term)
	if err != nil {
		return 0, err
	}
	n, err := postings.Docs(list.Bytes)
	return n, cmp.Or(err, list.Close())
}

func (s *scan) openList(w *word, chunk uint32) (err error) {
	if w.list, err = s.r.List(chunk, w.field, w.term); err == nil {
		w.open, w.chunk = true, chunk
		s.opened = append(s.opened, w)
	}
	return err
}

// listOf returns the value of the list of a word in the chunk at hand, until that is closed.
func (s *scan) listOf(w *word) ([]byte, error) {
	if w.open && w.chunk == s.chunk {
		return w.list.Bytes, nil
	}
	err := s.openList(w, s.chunk)
	return w.list.Bytes, err
}

// list begins a list of a word in the chunk at hand.
func (s *scan) list(l *postings.List, w *word) error {
	value, err := s.listOf(w)
	if l.Reset(value); len(value) > 0 {
		s.lists = append(s.lists, l)
	}
	return err
}
