package search

import (
	"context"
	"errors"
	"slices"

	"divan/shard/search/analysis"
	"divan/shard/search/highlight"
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage"
)

// evaluation is one query on a snapshot.
type evaluation struct {
	ctx   context.Context
	turn  *turn
	r     *postings.Reader
	def   *Definition
	query syntax.Query
	req   *Request
	room  room
	ties  int // hits that wait for their ids, at most
	statistics
	filters []filter
	none    postings.Set // of no document; it is only read
	// included are the stored fields of Request.IncludeFields.
	included map[string]struct{}
	marked   *highlight.Query // what is highlighted, when it is known

	// Of the chunk at hand:
	chunk  uint32
	size   uint32
	lists  []*postings.List
	opened []*word
	err    error // of what is read while matching
}

// collector takes the documents that match, in the order of their numbers.
type collector interface {
	// collect takes a document that matches; m is the matcher that it matches.
	collect(n postings.Number, m matcher) error
	// finish adds to an answer what was collected.
	finish(a *Answer) error
}

// filter says which documents are looked at, without a score.
type filter interface {
	// add adds those of the chunk at hand to an empty set.
	add(e *evaluation, to *postings.Set) error
}

// checkEvery is how many documents or terms are looked at between two looks at the context.
const checkEvery = 4096

// newEvaluation returns what answers a request, whose query was parsed, from a snapshot, in the
// turns of that.
func newEvaluation(t *turn, snap *storage.IndexSnapshot, def *Definition, q syntax.Query, req *Request) (*evaluation, error) {
	included := make(map[string]struct{}, len(req.IncludeFields))
	for _, name := range req.IncludeFields {
		included[name] = struct{}{}
	}
	e := &evaluation{
		ctx: t.ctx, turn: t, def: def, query: q, req: req, room: room{left: smallBytes, grow: t.grow},
		included: included, ties: tiesAtOnce,
	}
	var err error
	if e.r, err = postings.NewReader(snap, &e.room); err != nil {
		return nil, err
	}
	e.statistics = newStatistics(e.r.Versions())
	return e, nil
}

// run answers the request. It is called once.
func (e *evaluation) run() (a *Answer, err error) {
	defer func() { err = errors.Join(err, e.closeChunk(), e.r.Close()) }()
	collectors, err := e.collectors()
	if err != nil {
		return nil, err
	}
	root, err := e.compile(e.query, 1)
	if err != nil {
		return nil, err
	}
	a = &Answer{}
	if root != nil {
		if err := e.openFilters(); err != nil {
			return nil, err
		}
		if a.Total, err = e.chunks(root, collectors); err != nil {
			return nil, err
		}
	}
	for _, c := range collectors {
		if err := c.finish(a); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// chunks looks at all chunks and returns how many documents match.
func (e *evaluation) chunks(root node, collectors []collector) (total uint64, err error) {
	evaluate := func() (uint64, error) { return e.evaluate(root, collectors) }
	switch b, err := e.blockMax(root, collectors); {
	case err != nil:
		return 0, err
	case b != nil:
		evaluate = b.evaluate
	}
	for e.chunk = range e.r.Chunks() {
		n, err := evaluate()
		if err := errors.Join(err, e.closeChunk()); err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// collectors returns what collects the parts of the answer.
func (e *evaluation) collectors() (out []collector, err error) {
	var hits collector
	if e.req.Group != nil {
		hits, err = newGroupCollector(e)
	} else {
		hits, err = newHitCollector(e)
	}
	if err != nil {
		return nil, err
	}
	out = append(out, hits)
	for _, field := range e.req.Counts {
		c, err := newCounter(e, field)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	for i := range e.req.Ranges {
		c, err := newRanger(e, &e.req.Ranges[i])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// openFilters finds out which documents the request is about.
func (e *evaluation) openFilters() error {
	if e.req.Partition != "" {
		s, err := e.partition(e.req.Partition, 0)
		if err != nil {
			return err
		}
		e.filters = append(e.filters, s)
	}
	for i := range e.req.Drilldown {
		e.filters = append(e.filters, newDrilldown(&e.req.Drilldown[i]))
	}
	return nil
}

// filtered returns what passes all filters in the chunk at hand; nil: there are no filters.
func (e *evaluation) filtered() (*postings.Set, error) {
	var all *postings.Set
	for _, f := range e.filters {
		one := &postings.Set{}
		if err := f.add(e, one); err != nil {
			return nil, err
		}
		if all == nil {
			all = one
		} else {
			all.Keep(one)
		}
		if all.Seek(0) == postings.End {
			break
		}
	}
	return all, nil
}

// evaluate looks at the documents of a chunk and returns how many match.
func (e *evaluation) evaluate(root node, collectors []collector) (total uint64, err error) {
	if e.ctx.Err() != nil {
		return 0, e.ctx.Err()
	}
	pass, err := e.filtered()
	if err != nil || pass != nil && pass.Seek(0) == postings.End {
		return 0, err
	}
	e.size = e.r.Size(e.chunk)
	var dead postings.Set
	if err := e.r.Dead(e.chunk, &dead); err != nil {
		return 0, err
	}
	m, err := root.open(e)
	if err != nil {
		return 0, err
	}
	looked := 0
	for d := uint32(0); e.err == nil; d++ {
		if pass != nil {
			d = pass.Seek(d)
		}
		if d = m.seek(d); d >= postings.End {
			break
		}
		if looked++; looked%checkEvery == 0 {
			if err := e.turn.check(); err != nil {
				return 0, err
			}
		}
		if dead.Has(d) || pass != nil && !pass.Has(d) {
			continue
		}
		total++
		for _, c := range collectors {
			if err := c.collect(postings.At(e.chunk, d), m); err != nil {
				return 0, err
			}
		}
	}
	return total, e.err
}

// take takes room for a matcher of the chunk at hand.
func (e *evaluation) take(bytes int) error {
	e.room.taken += bytes
	return e.room.Take(bytes)
}

// closeChunk gives back what was read of a chunk, and tells what was damaged.
func (e *evaluation) closeChunk() (err error) {
	for _, l := range e.lists {
		err = errors.Join(err, l.Err())
	}
	for _, w := range e.opened {
		w.open = false
		err = errors.Join(err, w.list.Close())
	}
	e.lists, e.opened = e.lists[:0], e.opened[:0]
	e.room.left, e.room.taken = e.room.left+e.room.taken, 0
	return err
}

// occurs is Boolean.Occurs for the clauses of which something is left.
func (e *evaluation) occurs(b *syntax.Boolean, clauses []node) []syntax.Occur {
	return b.Occurs(e.def.Dialect, func(i int) bool { return clauses[i] == nil })
}

// token is a word of a query.
type token struct {
	term     []byte
	position int
}

// tokens analyses a text of a query as the texts of a field were.
func (e *evaluation) tokens(field, text string) (out []token) {
	var s analysis.Stream
	s.Reset(e.def.Analyzers.Of(field), text)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		out = append(out, token{slices.Clone(t.Term), t.Position})
	}
	return out
}
