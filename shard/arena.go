package shard

import (
	"fmt"

	"divan/storage/doc"
)

// Sizes of the batches that streams hand out. A batch is also full when the
// contents of its documents reach batchBytes, so that a stream holds a few MB
// for documents of any size.
const (
	batchRows  = 1024
	batchBytes = 1 << 20
)

// batchSize returns how many rows to collect when limit are wanted.
func batchSize(limit int) int {
	if limit > 0 && limit < batchRows {
		return limit
	}
	return batchRows
}

// arena collects the texts and documents of one batch, so that a row costs no
// allocation of its own: ids become parts of one string, bodies parts of one
// buffer, which the next batch uses again.
type arena struct {
	ids    []byte
	ends   []int // where each row's id ends in ids
	bodies []byte
	apart  int   // bytes of bodies that are not in the buffer
	docs   []Doc // never grown while rows point into it
	spans  []span
}

// span is a body that waits until the buffer does not move any more.
type span struct{ doc, from, to int }

func (a *arena) reset(rows int, docs bool) {
	a.ids, a.ends, a.bodies, a.spans = a.ids[:0], a.ends[:0], a.bodies[:0], a.spans[:0]
	a.apart = 0
	if docs && cap(a.docs) < rows {
		a.docs = make([]Doc, 0, rows)
	}
	clear(a.docs)
	a.docs = a.docs[:0]
}

func (a *arena) addID(id []byte) {
	a.ids = append(a.ids, id...)
	a.ends = append(a.ends, len(a.ids))
}

// eachID returns the ids in the order added, as parts of one string.
func (a *arena) eachID(each func(i int, id string)) {
	all := string(a.ids)
	from := 0
	for i, to := range a.ends {
		each(i, all[from:to])
		from = to
	}
}

// addDoc adds the document of a row. inline, when not nil, is its encoded
// content, which is copied; otherwise the content is read.
func (a *arena) addDoc(from reader, id string, rev doc.Rev, deleted bool, inline []byte) (*Doc, error) {
	if inline == nil {
		v, err := readRevision(from, id, rev)
		if err != nil {
			return nil, err
		}
		a.apart += len(v.Body)
		return a.put(Doc{ID: id, Rev: rev, Deleted: deleted, Body: v.Body, Atts: v.Atts}), nil
	}
	v, err := doc.DecodeRevision(inline)
	if err != nil {
		return nil, fmt.Errorf("read revision %s of %q: %w", rev, id, err)
	}
	at := len(a.bodies)
	a.bodies = append(a.bodies, v.Body...)
	a.spans = append(a.spans, span{doc: len(a.docs), from: at, to: len(a.bodies)})
	return a.put(Doc{ID: id, Rev: rev, Deleted: deleted, Atts: v.Atts}), nil
}

func (a *arena) put(d Doc) *Doc {
	a.docs = append(a.docs, d)
	return &a.docs[len(a.docs)-1]
}

// full reports whether the contents collected are enough for one batch.
func (a *arena) full() bool { return a.bytes() >= batchBytes }

// bytes is how large the contents are together.
func (a *arena) bytes() int { return len(a.bodies) + a.apart }

// setBodies gives the documents their bodies.
func (a *arena) setBodies() {
	for _, s := range a.spans {
		a.docs[s.doc].Body = a.bodies[s.from:s.to:s.to]
	}
}
