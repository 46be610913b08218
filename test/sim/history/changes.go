package history

import (
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// holds reports whether a range like 00000000-7fffffff is that of a document
// (semantics.md section 8.1).
func holds(span, id string) bool {
	first, last, _ := strings.Cut(span, "-")
	lo, errLo := strconv.ParseUint(first, 16, 32)
	hi, errHi := strconv.ParseUint(last, 16, 32)
	h := uint64(crc32.ChecksumIEEE([]byte(id)))
	return errLo == nil && errHi == nil && lo <= h && h <= hi
}

// final returns the leaves of all documents of a database in the end, as text.
func (h *History) final(db string) map[string]string {
	out := map[string]string{}
	for i := range h.Copies {
		k := &h.Copies[i]
		if k.DB != db {
			continue
		}
		for id, leaves := range k.Docs {
			revs := make([]string, 0, len(leaves))
			for _, l := range leaves {
				revs = append(revs, l.Rev)
			}
			out[id] = revsText(revs)
		}
	}
	return out
}

func revsText(revs []string) string {
	return strings.Join(slices.Sorted(slices.Values(revs)), " ")
}

// knowledge holds the leaves that a client knows once it has read up to some place.
type knowledge struct {
	leaves map[string]string
	// A client that began with since=now knows nothing of what was before.
	// Everything that was written from then on must reach it.
	blind bool
	began Span
}

// known follows the pages back to where the client began.
func (h *History) known(at Since) knowledge {
	var pages []Since
	for at.Page >= 0 {
		pages = append(pages, at)
		at = h.Pages[at.Page].Since
	}
	out := knowledge{leaves: map[string]string{}, blind: at.Page == Now}
	for _, s := range slices.Backward(pages) {
		p := &h.Pages[s.Page]
		if out.began == (Span{}) {
			out.began = p.Span
		}
		for _, r := range p.Rows[:s.Rows] {
			out.leaves[r.ID] = revsText(r.Leaves)
		}
	}
	return out
}

// changesMissNothing: who goes on from a sequence that was handed out learns
// of everything that has changed since.
func (c *checker) changesMissNothing() {
	final := map[string]map[string]string{}
	for i := range c.h.Replays {
		r := &c.h.Replays[i]
		if r.Err != "" {
			c.report("changes of %s since %s: %s", r.DB, c.h.place(r.Since), r.Err)
			continue
		}
		if final[r.DB] == nil {
			final[r.DB] = c.h.final(r.DB)
		}
		c.replayIsComplete(r, final[r.DB])
	}
}

// Sequence returns the sequence that was handed out at a place; 0 where no
// page is, and where a page broke off before its first row.
func (h *History) Sequence(s Since) string {
	if s.Page < 0 {
		return "0"
	}
	p := &h.Pages[s.Page]
	switch {
	case s.Rows == len(p.Rows) && p.Last != "":
		return p.Last
	case s.Rows == 0:
		return h.Sequence(p.Since)
	}
	return p.Rows[s.Rows-1].Seq
}

func (h *History) place(s Since) string {
	if s.Page < 0 {
		return "the beginning"
	}
	p := &h.Pages[s.Page]
	return h.Sequence(s) + " (through " + p.Node + " at " + p.Return.String() + ")"
}

func (c *checker) replayIsComplete(r *Replay, final map[string]string) {
	k := c.h.known(r.Since)
	for id, leaves := range r.Rows {
		k.leaves[id] = revsText(leaves)
	}
	for _, id := range slices.Sorted(maps.Keys(final)) {
		d := c.document(r.DB, id)
		got, ok := k.leaves[id]
		switch {
		case got == final[id] || len(d.purges) > 0:
		case !ok && k.blind && !d.writtenSince(k.began):
		case c.rolledBack(d):
		default:
			c.report("changes of %s since %s: %s is [%s], the client knows [%s]", r.DB, c.h.place(r.Since), id, final[id], got)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.Rows)) {
		if _, ok := final[id]; !ok && len(c.document(r.DB, id).purges) == 0 {
			c.report("changes of %s since %s: %s is in the feed and not on any copy", r.DB, c.h.place(r.Since), id)
		}
	}
}

// rolledBack reports whether a document may have gone back to what it was,
// because a disk was lost that alone had an edit of it. There is no change then
// that a feed could tell: who had seen the edit keeps it, and to who had not
// read that far the document was never shown at its former place.
func (c *checker) rolledBack(d *document) bool {
	return slices.ContainsFunc(d.edits, func(e *Edit) bool {
		gone := e.Outcome.Done() && c.h.lost(e) || e.Outcome == Unknown && c.h.duringLoss(e.Span)
		return gone && !c.h.onACopy(d, e.Rev)
	})
}

// onACopy reports whether a copy knows a revision in the end.
func (h *History) onACopy(d *document, rev string) bool {
	for i := range h.Copies {
		k := &h.Copies[i]
		if k.DB != d.db {
			continue
		}
		if slices.ContainsFunc(k.Docs[d.id], func(l Leaf) bool { return l.Rev == rev || slices.Contains(l.Ancestors, rev) }) {
			return true
		}
	}
	return false
}

// writtenSince reports whether an edit was certainly made after a span.
func (d *document) writtenSince(s Span) bool {
	return slices.ContainsFunc(d.edits, func(e *Edit) bool { return e.Outcome.Done() && e.Call >= s.Return })
}
