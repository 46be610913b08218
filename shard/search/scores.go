package search

import (
	"math"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
)

// Of BM25: how soon more of the same term counts less, and how much the length counts.
const (
	k1 = 1.2
	b  = 0.75
)

// weight is the weight of a term or a phrase.
type weight struct {
	factor float64
	mean   float64 // length of the field, of BM25; 0: the score is TF-IDF
}

// shortTerms is how many terms are looked for by a query that needs no turn.
const shortTerms = 64

type fieldTerm struct{ field, term string }

// statistics are the figures that scores are computed from, as far as they are
// known.
type statistics struct {
	byByte [256]float64 // lengths
	// versions is how many documents there are: dead ones are in the frequencies of terms as well.
	versions uint64
	fields   map[string]postings.FieldTotals
	known    map[fieldTerm]*word
}

func newStatistics(versions uint64) statistics {
	return statistics{versions: versions, fields: map[string]postings.FieldTotals{}, known: map[fieldTerm]*word{}}
}

// weigh returns what a phrase of words of a field is worth; it may be a single one.
func (c *compiler) weigh(field string, boost float64, words ...*word) (weight, error) {
	if c.def.Dialect == syntax.Nouveau {
		return c.weighBM25(field, boost, words)
	}
	idf := 0.0
	for _, w := range words {
		idf += max(0, 1+math.Log(float64(max(c.scan.versions, 1))/float64(w.docs+1)))
	}
	return weight{factor: idf * idf * boost}, nil
}

func (c *compiler) weighBM25(field string, boost float64, words []*word) (weight, error) {
	totals, err := c.scan.totals(field)
	if err != nil {
		return weight{}, err
	}
	w := weight{mean: 1}
	if totals.Docs > 0 && totals.Terms > 0 {
		w.mean = float64(totals.Terms) / float64(totals.Docs)
	}
	for _, word := range words {
		df := uint64(word.docs)
		docs := max(min(totals.Docs, c.scan.versions), df)
		w.factor += boost * math.Log1p((float64(docs)-float64(df)+0.5)/(float64(df)+0.5))
	}
	return w, nil
}

// score is that of a frequency in a document; length is 0 where the length of the field does
// not count.
func (w weight) score(frequency, length float64) float64 {
	if w.mean == 0 {
		if length == 0 {
			length = 1
		}
		return math.Sqrt(frequency) * w.factor / math.Sqrt(length)
	}
	if length == 0 {
		length = w.mean
	}
	return w.factor * frequency / (frequency + k1*(1-b+b*length/w.mean))
}

// length returns how many terms a document of the chunk has of a field, about; 0: that does
// not count.
func (s *scan) length(of *postings.Values, offset uint32) float64 {
	b, ok, err := of.Seek(postings.At(s.chunk, offset))
	if err != nil && s.err == nil {
		s.err = err
	}
	if !ok {
		return 0
	}
	return s.lengthOf(b[0])
}

// lengthOf is postings.Length.
func (s *scan) lengthOf(b byte) float64 {
	n := &s.byByte[b]
	if *n == 0 {
		*n = postings.Length(b)
	}
	return *n
}

// totals returns what an index of _nouveau knows of a field.
func (s *scan) totals(field string) (postings.FieldTotals, error) {
	t, ok := s.fields[field]
	if ok {
		return t, nil
	}
	t, err := s.r.Field(field)
	if err == nil {
		s.fields[field] = t
	}
	return t, err
}

// fieldType returns what a field is in an index of _nouveau; in others all are Untyped.
func (s *scan) fieldType(field string) (postings.FieldType, error) {
	t, err := s.totals(field)
	return t.Type, err
}
