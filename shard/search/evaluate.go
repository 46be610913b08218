package search

import (
	"errors"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage"
)

// evaluation is one query on a snapshot.
type evaluation struct {
	scan     scan
	compiler compiler
	parts    hitParts
	query    syntax.Query
	req      *Request
	ties     int // hits that wait for their ids, at most
	filters  []filter
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
	add(s *scan, to *postings.Set) error
}

// checkEvery is how many documents or terms are looked at between two looks at the context.
const checkEvery = 4096

// newEvaluation returns what answers a request, whose query was parsed, from a snapshot, in the
// turns of that.
func newEvaluation(t *turn, snap *storage.IndexSnapshot, def *Definition, q syntax.Query, req *Request) (*evaluation, error) {
	e := &evaluation{query: q, req: req, ties: tiesAtOnce}
	if err := e.scan.open(t, snap); err != nil {
		return nil, err
	}
	e.compiler = compiler{&e.scan, def, req.Locale}
	e.parts = hitParts{
		newStoredFields(&e.scan, req.IncludeFields),
		highlighter{scan: &e.scan, compiler: &e.compiler, query: q, req: req.Highlight},
	}
	return e, nil
}

// run answers the request. It is called once.
func (e *evaluation) run() (a *Answer, err error) {
	defer func() { err = errors.Join(err, e.scan.closeChunk(), e.scan.r.Close()) }()
	collectors, err := e.collectors()
	if err != nil {
		return nil, err
	}
	root, err := e.compiler.compile(e.query, 1)
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
	for e.scan.chunk = range e.scan.r.Chunks() {
		n, err := evaluate()
		if err := errors.Join(err, e.scan.closeChunk()); err != nil {
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
		c, err := newCounter(&e.scan, field)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	for i := range e.req.Ranges {
		c, err := newRanger(&e.scan, e.compiler.def.Dialect, &e.req.Ranges[i])
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
		s, err := e.compiler.partition(e.req.Partition, 0)
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
		if err := f.add(&e.scan, one); err != nil {
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
	if e.scan.ctx.Err() != nil {
		return 0, e.scan.ctx.Err()
	}
	pass, err := e.filtered()
	if err != nil || pass != nil && pass.Seek(0) == postings.End {
		return 0, err
	}
	e.scan.size = e.scan.r.Size(e.scan.chunk)
	var dead postings.Set
	if err := e.scan.r.Dead(e.scan.chunk, &dead); err != nil {
		return 0, err
	}
	m, err := root.open(&e.scan)
	if err != nil {
		return 0, err
	}
	looked := 0
	for d := uint32(0); e.scan.err == nil; d++ {
		if pass != nil {
			d = pass.Seek(d)
		}
		if d = m.seek(d); d >= postings.End {
			break
		}
		if looked++; looked%checkEvery == 0 {
			if err := e.scan.turn.check(); err != nil {
				return 0, err
			}
		}
		if dead.Has(d) || pass != nil && !pass.Has(d) {
			continue
		}
		total++
		for _, c := range collectors {
			if err := c.collect(postings.At(e.scan.chunk, d), m); err != nil {
				return 0, err
			}
		}
	}
	return total, e.scan.err
}
