package view

import (
	"bytes"

	"divan/shard"
)

// together is a run of rows that have one key and one document. They are never in two batches: a
// reader that goes on at another copy behind the last row would miss the rest.
type together struct{ start, first, end int } // first: the first row that is answered with the document

func togetherFrom(rows []Row, start int) together {
	g := together{start: start, first: start, end: start}
	for ; g.end < len(rows) && rows[g.end].sameAs(&rows[start]); g.end++ {
		if g.first < g.end {
			continue
		}
		if _, named := rows[g.end].Link(); named {
			g.first++
		}
	}
	return g
}

// give gives a document to those rows that name no other one.
func (g together) give(rows []Row, d *shard.Doc) {
	if d == nil {
		return
	}
	rows[g.first].Doc = d
	for i := g.first + 1; i < g.end; i++ {
		if _, named := rows[i].Link(); !named {
			rows[i].RepeatDoc(d)
		}
	}
}

// sameAs reports whether two rows have one key and one document.
func (r *Row) sameAs(o *Row) bool {
	return r.ID == o.ID && r.Range == o.Range && bytes.Equal(r.Sort, o.Sort)
}
