package search

import (
	"math"
	"strings"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage"
)

// written is an index whose postings a test writes itself, so that it has many documents soon.
type written struct {
	n   *world
	def *Definition
	s   *storage.Store
	x   *storage.Index
	w   *postings.Writer
	b   *storage.IndexBatch

	ties  int // evaluation.ties; 0: as it is
	space int // bytes that an answer may take; 0: as many as others
}

// write begins an index of a definition; so many bytes end a chunk.
func (n *world) write(definition string, chunkBytes uint64) *written {
	n.t.Helper()
	def, err := ParseText([]byte(definition))
	must(n.t, err)
	w := &written{n: n, def: def}
	w.s, err = n.engine.Acquire(copyName)
	must(n.t, err)
	w.x, err = n.engine.Indexes().Acquire(w.s, def.name().String())
	must(n.t, err)
	w.w, err = postings.NewWriter(w.x, chunkBytes)
	must(n.t, err)
	w.b = w.x.NewBatch(false)
	return w
}

func (w *written) close() {
	w.b.Close()
	w.n.engine.Indexes().Release(w.x)
	w.n.engine.Release(w.s)
}

// document adds words of the field t to a document, which Begin began, and keeps it. It is as
// long as if it had so many words.
func (w *written) document(v *postings.Inverter, words []string, length int) {
	w.n.t.Helper()
	if w.def.Dialect == syntax.Nouveau {
		must(w.n.t, v.Type("t", postings.TextType))
	}
	for i, word := range words {
		v.Term("t", []byte(word), i)
	}
	v.Boost("t", math.Sqrt(float64(len(words))/float64(length)))
	v.Keep()
}

// apply writes documents, and commits them.
func (w *written) apply(v *postings.Inverter, commit bool) {
	w.n.t.Helper()
	must(w.n.t, w.w.Apply(w.b, v.Finish(), false))
	if commit {
		must(w.n.t, w.w.Flush(w.b))
		must(w.n.t, w.b.Commit(w.n.t.Context()))
	}
}

// list is the key and the value of the list of a term of the first chunk.
func (w *written) list(term string) (key, value string) {
	w.n.t.Helper()
	snap, err := w.x.Snapshot()
	must(w.n.t, err)
	defer snap.Close()
	it, err := snap.Iterate([]byte("p"), []byte("q"))
	must(w.n.t, err)
	defer func() { must(w.n.t, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if key = string(it.Key()); strings.HasSuffix(key, term) {
			v, err := it.Value()
			must(w.n.t, err)
			return key, string(v)
		}
	}
	return "", ""
}

// answer answers a request from what was committed.
func (w *written) answer(req *Request) *Answer {
	w.n.t.Helper()
	a, err := w.try(req)
	must(w.n.t, err)
	return a
}

// try is answer, or returns why there is none.
func (w *written) try(req *Request) (*Answer, error) {
	w.n.t.Helper()
	snap, err := w.x.Snapshot()
	must(w.n.t, err)
	defer snap.Close()
	turn := w.n.indexes.turns.newTurn(w.n.t.Context(), "x")
	defer turn.end()
	q, err := syntax.Parse(req.Query, w.def.Dialect)
	must(w.n.t, err)
	e, err := newEvaluation(turn, snap, w.def, q, req)
	must(w.n.t, err)
	if w.ties > 0 {
		e.ties = w.ties
	}
	if w.space > 0 {
		e.scan.space = space{left: w.space}
	}
	return e.run()
}
