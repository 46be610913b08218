package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/valyala/fasthttp"
)

// searchDesign is the design document of the search workloads.
const searchDesign = `{"indexes":{"text":{"index":"function (doc) { index('default', doc.text); index('kind', doc.kind, {facet: true}); index('n', doc.n); }"}}}`

const (
	kinds        = 20      // values of the facet
	vocabulary   = 50_000  // different words
	drawnWords   = 1 << 18 // of which a text is made, the more frequent ones more often
	frequentWord = 4       // the rank of a word that most documents have
)

// word is the one of a rank: the frequent ones are short.
func word(rank int) string {
	const consonants, vowels = "bdfghklmnprstvz", "aeiou"
	var out []byte
	for n := rank + 1; n > 0; n /= len(consonants) * len(vowels) {
		out = append(out, consonants[n%len(consonants)], vowels[n/len(consonants)%len(vowels)])
	}
	return string(out) + "n" // no stop word
}

// words are drawn by Zipf's law.
type words struct {
	texts []string // by rank
	drawn []int32  // ranks, the more frequent ones more often
}

func newWords() words {
	sum := 0.0
	w := words{drawn: make([]int32, 0, drawnWords)}
	for rank := range vocabulary {
		sum += 1 / float64(rank+1)
		w.texts = append(w.texts, word(rank))
	}
	for rank, at := 0, 0.0; rank < vocabulary; rank++ {
		at += 1 / float64(rank+1) / sum
		for upto := int(math.Round(at * drawnWords)); len(w.drawn) < upto; {
			w.drawn = append(w.drawn, int32(rank))
		}
	}
	return w
}

// of returns the rank of a word of the text of a document.
func (w *words) of(n int64, place int) int32 {
	return w.drawn[mix(uint64(n)<<16|uint64(place))%uint64(len(w.drawn))]
}

// tellingPlace returns where in the beginning of a text the rarest word is, as people look for
// words that tell something.
func (w *words) tellingPlace(n int64) (place int) {
	for i := 1; i < 5; i++ {
		if w.of(n, i) > w.of(n, place) {
			place = i
		}
	}
	return place
}

// searches are the workloads with full-text queries.
type searches struct {
	rig
	writes   *writes
	searched bool  // the search database and its index are there
	words    words // of the texts that are searched
}

// appendDoc is documents.appendDoc for documents that are searched.
func (s *searches) appendDoc(dst, id, _ []byte, n int64) []byte {
	start := len(dst)
	dst = append(append(append(dst, `{"_id":"`...), id...), `","kind":"kind`...)
	dst = strconv.AppendUint(dst, mix(uint64(n))%kinds, 10)
	dst = strconv.AppendInt(append(dst, `","n":`...), n, 10)
	dst = append(dst, `,"text":"`...)
	for place := 0; place == 0 || len(dst)-start < s.cfg.DocSize-len(`"}`); place++ {
		if place > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, s.words.texts[s.words.of(n, place)]...)
	}
	return append(dst, `"}`...)
}

func (s *searches) path(query string) []byte {
	return []byte("/" + s.server.prefix + "search/_design/bench/_search/text?" + query)
}

// build waits for the first answer of a full-text index. The documents are written
// before anything is measured.
func (s *searches) build(ctx context.Context, r *recorder) error {
	s.words = newWords()
	if err := s.server.create("search"); err != nil {
		return err
	}
	if err := s.writes.bulkInto(ctx, newRecorder(workload{}, Config{}), "search", s.appendDoc); err != nil {
		return err
	}
	err := s.clients.once(ctx, r, s.cfg.Docs, func(a *call) error {
		if err := a.do(fasthttp.MethodPut, []byte("/"+s.server.prefix+"search/_design/bench"), []byte(searchDesign), fasthttp.StatusCreated, fasthttp.StatusAccepted); err != nil {
			return err
		}
		if err := a.do(fasthttp.MethodGet, s.path("limit=1&q="+word(0)), nil, fasthttp.StatusOK); err != nil {
			return err
		}
		return a.want(`"id"`)
	})
	s.searched = err == nil
	return err
}

// term asks for the best 25 documents with a word that tells something of one of them.
func (s *searches) term(ctx context.Context, r *recorder) error {
	return s.ask(ctx, r, func(query []byte) []byte {
		n := rand.Int64N(int64(s.cfg.Docs))
		return fmt.Appendf(query, "limit=25&q=%s", s.words.texts[s.words.of(n, s.words.tellingPlace(n))])
	})
}

// phrase asks for the best 25 documents with two words one behind the other, as some
// document has them.
func (s *searches) phrase(ctx context.Context, r *recorder) error {
	return s.ask(ctx, r, func(query []byte) []byte {
		n := rand.Int64N(int64(s.cfg.Docs))
		place := s.words.tellingPlace(n)
		return fmt.Appendf(query, "limit=25&q=%%22%s%%20%s%%22", s.words.texts[s.words.of(n, place)], s.words.texts[s.words.of(n, place+1)])
	})
}

// facet counts the documents with a frequent word by their kind.
func (s *searches) facet(ctx context.Context, r *recorder) error {
	return s.ask(ctx, r, func(query []byte) []byte {
		return fmt.Appendf(query, `limit=1&q=%s&counts=%%5B%%22kind%%22%%5D`, word(frequentWord))
	})
}

// ask asks the full-text index until the time is up. Each answer has a hit.
func (s *searches) ask(ctx context.Context, r *recorder, query func(dst []byte) []byte) error {
	if !s.searched {
		if err := s.build(ctx, newRecorder(workload{}, Config{})); err != nil {
			return err
		}
	}
	return s.clients.timedRequests(ctx, r, func(int) client {
		var path []byte
		return func(a *call, _ int64) (int64, error) {
			path = query(append(path[:0], s.path("")...))
			if err := a.do(fasthttp.MethodGet, path, nil, fasthttp.StatusOK); err != nil {
				return 0, err
			}
			return 1, a.want(`"id"`)
		}
	})
}
