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

// appendSearchDoc is appendDoc for documents that are searched.
func (b *bench) appendSearchDoc(dst, id, _ []byte, n int64) []byte {
	start := len(dst)
	dst = append(append(append(dst, `{"_id":"`...), id...), `","kind":"kind`...)
	dst = strconv.AppendUint(dst, mix(uint64(n))%kinds, 10)
	dst = strconv.AppendInt(append(dst, `","n":`...), n, 10)
	dst = append(dst, `,"text":"`...)
	for place := 0; place == 0 || len(dst)-start < b.cfg.DocSize-len(`"}`); place++ {
		if place > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, b.words.texts[b.words.of(n, place)]...)
	}
	return append(dst, `"}`...)
}

func (b *bench) searchPath(query string) []byte {
	return []byte("/" + b.prefix + "search/_design/bench/_search/text?" + query)
}

// searchBuild waits for the first answer of a full-text index. The documents are written
// before anything is measured.
func (b *bench) searchBuild(ctx context.Context, r *recorder) error {
	b.words = newWords()
	if err := b.create("search"); err != nil {
		return err
	}
	if err := b.bulkInto(ctx, newRecorder(workload{}, Config{}), "search", b.appendSearchDoc); err != nil {
		return err
	}
	err := b.once(ctx, r, func(a *call) error {
		if err := a.do(fasthttp.MethodPut, []byte("/"+b.prefix+"search/_design/bench"), []byte(searchDesign), fasthttp.StatusCreated, fasthttp.StatusAccepted); err != nil {
			return err
		}
		if err := a.do(fasthttp.MethodGet, b.searchPath("limit=1&q="+word(0)), nil, fasthttp.StatusOK); err != nil {
			return err
		}
		return a.want(`"id"`)
	})
	b.searched = err == nil
	return err
}

// searchTerm asks for the best 25 documents with a word that tells something of one of them.
func (b *bench) searchTerm(ctx context.Context, r *recorder) error {
	return b.ask(ctx, r, func(query []byte) []byte {
		n := rand.Int64N(int64(b.cfg.Docs))
		return fmt.Appendf(query, "limit=25&q=%s", b.words.texts[b.words.of(n, b.words.tellingPlace(n))])
	})
}

// searchPhrase asks for the best 25 documents with two words one behind the other, as some
// document has them.
func (b *bench) searchPhrase(ctx context.Context, r *recorder) error {
	return b.ask(ctx, r, func(query []byte) []byte {
		n := rand.Int64N(int64(b.cfg.Docs))
		place := b.words.tellingPlace(n)
		return fmt.Appendf(query, "limit=25&q=%%22%s%%20%s%%22", b.words.texts[b.words.of(n, place)], b.words.texts[b.words.of(n, place+1)])
	})
}

// searchFacet counts the documents with a frequent word by their kind.
func (b *bench) searchFacet(ctx context.Context, r *recorder) error {
	return b.ask(ctx, r, func(query []byte) []byte {
		return fmt.Appendf(query, `limit=1&q=%s&counts=%%5B%%22kind%%22%%5D`, word(frequentWord))
	})
}

// ask asks the full-text index until the time is up. Each answer has a hit.
func (b *bench) ask(ctx context.Context, r *recorder, query func(dst []byte) []byte) error {
	if !b.searched {
		if err := b.searchBuild(ctx, newRecorder(workload{}, Config{})); err != nil {
			return err
		}
	}
	return b.timedRequests(ctx, r, func(int) client {
		var path []byte
		return func(a *call, _ int64) (int64, error) {
			path = query(append(path[:0], b.searchPath("")...))
			if err := a.do(fasthttp.MethodGet, path, nil, fasthttp.StatusOK); err != nil {
				return 0, err
			}
			return 1, a.want(`"id"`)
		}
	})
}
