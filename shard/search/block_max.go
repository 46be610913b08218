package search

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"divan/shard/search/postings"
)

// blockMax answers a query of one term whose hits are in the order of their scores. Heads of
// runs tell how many documents there are and what the best score of each run can be, so that
// only runs that may have a hit are decoded, and those that may have dead documents, which the
// total leaves out.
type blockMax struct {
	s    *scan
	term *termNode
	hits *hitCollector

	// Of the chunk at hand:
	dead       postings.Set
	m          termMatcher
	candidates []candidate // at most candidatesAtOnce
	looked     int
}

// candidate is a run, and what no score of its documents exceeds.
type candidate struct {
	run   postings.Run
	bound float64
}

// candidatesAtOnce is how many runs are put in the order of their bounds: as many as a chunk has
// when they are full.
const (
	candidatesAtOnce = 512
	candidateBytes   = 64
)

// blockMax returns what answers a query by the bounds of runs; nil: each document that matches
// has to be looked at.
func (e *evaluation) blockMax(root node, collectors []collector) (*blockMax, error) {
	term, isTerm := root.(*termNode)
	hits, isHits := collectors[0].(*hitCollector)
	if !isTerm || !isHits || len(collectors) > 1 || len(e.filters) > 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	if first := &hits.o.sort[0]; first.By != ByScore || !first.Descending || !term.weight.bounded() {
		return nil, nil //nolint:nilnil // likewise
	}
	b := &blockMax{s: &e.scan, term: term, hits: hits, candidates: make([]candidate, 0, candidatesAtOnce)}
	b.m = termMatcher{n: term, s: b.s, lengths: b.s.r.Values(postings.Lengths, term.word.field)}
	return b, b.s.space.Take(matcherBytes + postings.ChunkSize/8 + candidatesAtOnce*candidateBytes)
}

// bounded reports whether scores grow with the frequency and fall with the length.
func (w weight) bounded() bool { return w.factor >= 0 }

// bound returns an upper bound, after rounding, of the scores of frequencies up to highest and
// lengths down to shortest; shortest is a LengthByte that is not 0. Scores of numbers that are
// close to each other may be rounded into another order, by less than is added here.
func (b *blockMax) bound(highest uint32, shortest byte) float64 {
	if shortest == 0 {
		return math.Inf(1)
	}
	return finite(b.term.weight.score(float64(highest), b.s.lengthOf(shortest)) * (1 + 1e-12))
}

// evaluate looks at a chunk and returns how many of its documents match.
func (b *blockMax) evaluate() (total uint64, err error) {
	s := b.s
	if s.ctx.Err() != nil {
		return 0, s.ctx.Err()
	}
	b.dead = postings.Set{}
	if err := s.r.Dead(s.chunk, &b.dead); err != nil {
		return 0, err
	}
	list, err := s.listOf(b.term.word)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	runs := postings.RunsOf(list)
	for run, ok := runs.Next(); ok; run, ok = runs.Next() {
		if err := b.look(1); err != nil {
			return 0, err
		}
		live, err := b.live(&run)
		if err != nil {
			return 0, err
		}
		total += uint64(live)
		bound := b.bound(run.Highest, run.Shortest)
		if live == 0 || !b.hits.mayKeep(bound) {
			continue
		}
		if b.candidates = append(b.candidates, candidate{run, bound}); len(b.candidates) == candidatesAtOnce {
			if err := b.collect(); err != nil {
				return 0, err
			}
		}
	}
	if err := runs.Err(); err != nil {
		return 0, err
	}
	return total, b.collect()
}

// look waits for a turn when enough was looked at.
func (b *blockMax) look(at int) error {
	if b.looked += at; b.looked < checkEvery {
		return nil
	}
	b.looked = 0
	return b.s.turn.check()
}

// live counts the documents of a run that are not dead.
func (b *blockMax) live(run *postings.Run) (int, error) {
	n, d := run.Docs, b.dead.Seek(run.First)
	if d > run.Last {
		return n, nil
	}
	list := &b.m.list
	for list.ResetTo(run); d <= run.Last; d = b.dead.Seek(d + 1) {
		if list.Seek(d) == d {
			n--
		}
	}
	return n, list.Err()
}

// collect takes hits from the candidates, the best ones first: those leave out most others.
func (b *blockMax) collect() error {
	slices.SortFunc(b.candidates, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.bound, x.bound), cmp.Compare(x.run.First, y.run.First))
	})
	for i := range b.candidates {
		c := &b.candidates[i]
		if !b.hits.mayKeep(c.bound) {
			break
		}
		if err := b.look(c.run.Docs); err != nil {
			return err
		}
		if err := b.collectRun(&c.run); err != nil {
			return err
		}
	}
	b.candidates = b.candidates[:0]
	return nil
}

// collectRun takes the hits of a run. The length of a document is read only if its frequency
// may be enough for a hit.
func (b *blockMax) collectRun(run *postings.Run) error {
	b.m.list.ResetTo(run)
	enough := 1 + uint32(sort.Search(int(run.Highest-1), func(i int) bool { return b.hits.mayKeep(b.bound(uint32(i)+1, run.Shortest)) }))
	for d := b.m.seek(0); d < postings.End && b.s.err == nil; d = b.m.seek(d + 1) {
		if b.m.list.Freq() < enough || b.dead.Has(d) {
			continue
		}
		if err := b.hits.collect(postings.At(b.s.chunk, d), &b.m); err != nil {
			return err
		}
	}
	return cmp.Or(b.s.err, b.m.list.Err())
}

// mayKeep reports whether a hit may be kept, in an order by score, the score of which is not
// above a bound.
func (t *top) mayKeep(bound float64) bool {
	if t.limit <= 0 {
		return false
	}
	return len(t.hits) < t.limit || bound >= t.hits[0].order[0].Number
}
