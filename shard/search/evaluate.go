package search

import (
	"context"
	"errors"
	"io"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage"
)

// evaluation is one query on a snapshot.
type evaluation struct {
	ctx     context.Context
	r       *postings.Reader
	req     *Request
	lengths map[string]*postings.Values // by field

	// Of the chunk at hand:
	chunk  uint32
	size   uint32
	lists  []*postings.List
	opened []io.Closer
	err    error // of what is read while matching
}

// checkEvery is how many documents or terms are looked at between two looks at the context.
const checkEvery = 4096

// run answers a request from a snapshot.
func run(ctx context.Context, snap *storage.IndexSnapshot, req *Request) (*Answer, error) {
	r, err := postings.NewReader(snap)
	if err != nil {
		return nil, err
	}
	e := &evaluation{ctx: ctx, r: r, req: req, lengths: map[string]*postings.Values{}}
	t, err := newTop(e)
	if err != nil {
		return nil, err
	}
	root, err := e.compile(req.Query, 1)
	if err != nil || root == nil {
		return &Answer{}, err
	}
	a := &Answer{}
	for e.chunk = range r.Chunks() {
		n, err := e.evaluate(root, t)
		if err != nil {
			return nil, err
		}
		a.Total += n
	}
	a.Hits, err = t.finish()
	return a, err
}

// evaluate looks at the documents of a chunk and returns how many match.
func (e *evaluation) evaluate(root node, t *top) (total uint64, err error) {
	defer func() { err = errors.Join(err, e.closeChunk()) }()
	if e.size, err = e.r.Size(e.chunk); err != nil {
		return 0, err
	}
	var dead postings.Set
	if err := e.r.Dead(e.chunk, &dead); err != nil {
		return 0, err
	}
	m, err := root.open(e)
	if err != nil {
		return 0, err
	}
	looked := 0
	for d := m.seek(0); d < postings.End && e.err == nil; d = m.seek(d + 1) {
		if looked++; looked%checkEvery == 0 && e.ctx.Err() != nil {
			return 0, e.ctx.Err()
		}
		if dead.Has(d) {
			continue
		}
		total++
		if err := t.offer(postings.At(e.chunk, d), m); err != nil {
			return 0, err
		}
	}
	return total, e.err
}

// closeChunk gives back what was read of a chunk, and tells what was damaged.
func (e *evaluation) closeChunk() (err error) {
	for _, l := range e.lists {
		err = errors.Join(err, l.Err())
	}
	for _, c := range e.opened {
		err = errors.Join(err, c.Close())
	}
	e.lists, e.opened = e.lists[:0], e.opened[:0]
	return err
}

// list opens the list of a term in the chunk.
func (e *evaluation) list(l *postings.List, field string, term []byte) error {
	back, err := e.r.List(l, e.chunk, field, term)
	if err != nil {
		return err
	}
	if back != nil {
		e.opened, e.lists = append(e.opened, back), append(e.lists, l)
	}
	return nil
}

// length returns how many terms a document of the chunk has of a field, about.
func (e *evaluation) length(field string, offset uint32) float64 {
	v := e.lengths[field]
	if v == nil {
		v = e.r.Values(postings.Lengths, field)
		e.lengths[field] = v
	}
	b, ok, err := v.Seek(postings.At(e.chunk, offset))
	if err != nil && e.err == nil {
		e.err = err
	}
	if !ok {
		return 1
	}
	return max(1, postings.Length(b[0]))
}

// occurs is Boolean.Occurs for the clauses of which something is left.
func (e *evaluation) occurs(b *syntax.Boolean, clauses []node) []syntax.Occur {
	return b.Occurs(e.req.Dialect, func(i int) bool { return clauses[i] == nil })
}
