package history

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// databases returns which databases still have copies in the end.
func (h *History) databases() map[string]bool {
	out := map[string]bool{}
	for _, k := range h.Copies {
		out[k.DB] = true
	}
	return out
}

// temporary reports whether a database comes and goes.
func (h *History) temporary(db string) bool {
	return slices.ContainsFunc(h.Metas, func(m Meta) bool { return m.DB == db && m.Kind == Delete })
}

// copiesAgree: all copies that hold a document have the same leaves of it, with the same
// winner and the same attachments. Their ranges need not be the same.
func (c *checker) copiesAgree() {
	dbs := map[string][]*Copy{}
	for i := range c.h.Copies {
		k := &c.h.Copies[i]
		dbs[k.DB] = append(dbs[k.DB], k)
	}
	for _, db := range slices.Sorted(maps.Keys(dbs)) {
		ids := map[string]bool{}
		for _, k := range dbs[db] {
			for id := range k.Docs {
				ids[id] = true
			}
		}
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			c.agree(dbs[db], id)
		}
	}
}

func (c *checker) agree(copies []*Copy, id string) {
	var first *Copy
	for _, k := range copies {
		switch {
		case !holds(k.Range, id):
			if _, there := k.Docs[id]; there {
				c.report("%s of %s on %s holds %s", k.Range, k.DB, k.Node, id)
			}
		case first == nil:
			first = k
		default:
			if a, b := leavesText(first.Docs[id]), leavesText(k.Docs[id]); a != b {
				c.report("copies %s and %s of %s differ in %s: %s has [%s], %s has [%s]%s", first.Range, k.Range, k.DB, id, first.Node, a, k.Node, b, c.story(first, k, id))
			}
		}
	}
}

// story tells more about a document in which two copies differ.
func (c *checker) story(a, b *Copy, id string) string {
	var out strings.Builder
	for _, k := range []*Copy{a, b} {
		for _, l := range k.Docs[id] {
			fmt.Fprintf(&out, "\n    %s: %s < %s", k.Node, l.Rev, strings.Join(l.Ancestors, " "))
		}
	}
	d := c.document(a.DB, id)
	for _, e := range d.edits {
		fmt.Fprintf(&out, "\n    %v to %v through %s: %s on %s%v deleted=%v, number %d: %v", e.Call, e.Return, e.Node, e.Rev, e.Parent, e.Ancestors, e.Deleted, e.Number, e.Outcome)
	}
	for _, p := range d.purges {
		fmt.Fprintf(&out, "\n    %v to %v through %s: purge of %s: %v", p.Call, p.Return, p.Node, p.Rev, p.Outcome)
	}
	return out.String()
}

// leavesText is the same for the same leaves; the winner stands first.
func leavesText(leaves []Leaf) string {
	out := make([]string, 0, len(leaves))
	for _, l := range leaves {
		text := l.Rev
		if l.Deleted {
			text += " deleted"
		}
		for _, name := range slices.Sorted(maps.Keys(l.Attachments)) {
			text += " " + name + "=" + l.Attachments[name]
		}
		out = append(out, text)
	}
	if len(out) > 1 {
		slices.Sort(out[1:]) // only the first place counts
	}
	return strings.Join(out, ", ")
}

// editsSurvive: every edit that was acknowledged or accepted is a leaf or an
// ancestor of one on every copy, a leaf with the attachments that it was
// written with.
func (c *checker) editsSurvive() {
	alive := c.h.databases()
	for _, d := range c.sorted() {
		if !alive[d.db] || c.h.temporary(d.db) {
			continue
		}
		for _, e := range d.edits {
			if !e.Outcome.Done() || d.purged[e.Rev] || c.h.lost(e) {
				continue
			}
			for i := range c.h.Copies {
				if k := &c.h.Copies[i]; k.DB == d.db && holds(k.Range, d.id) {
					c.editSurvives(d, e, k)
				}
			}
		}
	}
}

// renewedKeep: what was written to a database after it had been made again, by the time of
// its clients, is not lost with the one that had its name before, no matter what the node
// that took the write has heard. Copies that are cut off from the majority may not know
// better: one always, so that what is only accepted counts while nothing is broken, and as
// many as make a quorum from five nodes on and before all nodes of a new cluster vote, so
// that there nothing else counts.
func (c *checker) renewedKeep() {
	alive := c.h.databases()
	for _, d := range c.sorted() {
		if !alive[d.db] || !c.h.temporary(d.db) {
			continue
		}
		since, ok := c.h.renewed(d.db)
		for _, e := range d.edits {
			voted := c.h.Voting != 0 && since >= c.h.Voting
			sure := c.h.calm(e.Span) || e.Outcome == Acked && c.h.nodes() < 5 && voted
			if !ok || e.Call < since || !e.Outcome.Done() || !sure || c.h.lost(e) {
				continue
			}
			for i := range c.h.Copies {
				if k := &c.h.Copies[i]; k.DB == d.db && holds(k.Range, d.id) {
					c.editSurvives(d, e, k)
				}
			}
		}
	}
}

// nodes counts the nodes that were asked for anything.
func (h *History) nodes() int {
	seen := map[string]bool{}
	for i := range h.Edits {
		seen[h.Edits[i].Node] = true
	}
	for i := range h.Metas {
		seen[h.Metas[i].Node] = true
	}
	return len(seen)
}

// renewed returns from when on a database was there for good: it was made by then, and
// every deletion that took effect, or may have, had been answered before. false: one was
// not answered, or no client was told that it was made.
func (h *History) renewed(db string) (since time.Duration, ok bool) {
	var gone time.Duration
	for i := range h.Metas {
		switch m := &h.Metas[i]; {
		case m.DB != db || m.Kind != Delete:
		case m.unknown():
			return 0, false
		case m.Status == 200:
			gone = max(gone, m.Return)
		}
	}
	for i := range h.Metas {
		m := &h.Metas[i]
		if m.DB == db && m.Kind == Create && m.Status == 201 && m.Call >= gone && (!ok || m.Return < since) {
			since, ok = m.Return, true
		}
	}
	return since, ok
}

// lost reports whether an edit may be gone with a disk.
func (h *History) lost(e *Edit) bool {
	return (e.Outcome == Accepted || e.Quorum < quorum) && h.duringLoss(e.Span)
}

// duringLoss reports whether a disk that was lost may have been the only one
// that held what was done in a span.
func (h *History) duringLoss(done Span) bool {
	return slices.ContainsFunc(h.Losses, func(s Span) bool { return done.Call <= s.Return && done.Return >= s.Call })
}

func (c *checker) editSurvives(d *document, e *Edit, k *Copy) {
	for _, l := range k.Docs[d.id] {
		if l.Rev != e.Rev {
			if slices.Contains(l.Ancestors, e.Rev) {
				return
			}
			continue
		}
		if l.Deleted != e.Deleted || e.Number != 0 && l.Number != e.Number {
			c.report("%s/%s %s on %s (%s): deleted %v, number %d, written were %v, %d", d.db, d.id, e.Rev, k.Node, k.Range, l.Deleted, l.Number, e.Deleted, e.Number)
		}
		if e.Attachments != nil && !maps.Equal(l.Attachments, e.Attachments) {
			c.report("%s/%s %s on %s (%s): attachments %v, written were %v", d.db, d.id, e.Rev, k.Node, k.Range, l.Attachments, e.Attachments)
		}
		return
	}
	c.report("%s/%s: edit %s (number %d, %s through %s at %v to %v) is lost on %s (%s), which has [%s]%s",
		d.db, d.id, e.Rev, e.Number, e.Outcome, e.Node, e.Call, e.Return, k.Node, k.Range, leavesText(k.Docs[d.id]), c.story(k, k, d.id))
}

// refusalsLeaveNothing: what was answered 409 shows up nowhere, neither in the
// end nor in any read.
func (c *checker) refusalsLeaveNothing() {
	refused := map[string]map[int]*Edit{}
	for i := range c.h.Edits {
		e := &c.h.Edits[i]
		if e.Number == 0 || e.Outcome != Conflict && e.Outcome != Refused {
			continue
		}
		if refused[e.DB] == nil {
			refused[e.DB] = map[int]*Edit{}
		}
		refused[e.DB][e.Number] = e
	}
	for i := range c.h.Copies {
		k := &c.h.Copies[i]
		for _, n := range slices.Sorted(maps.Keys(k.Numbers)) {
			if e := refused[k.DB][n]; e != nil {
				c.report("%s/%s: edit number %d on %s was refused (%s through %s at %v to %v) and is stored on %s%s",
					k.DB, k.Numbers[n], n, e.Parent, e.Outcome, e.Node, e.Call, e.Return, k.Node, c.story(k, k, e.ID))
			}
		}
	}
	for i := range c.h.Reads {
		r := &c.h.Reads[i]
		if e := refused[r.DB][r.Number]; e != nil {
			c.report("%s/%s: edit number %d was refused (%s through %s at %v to %v) and was read through %s at %v as %s", r.DB, r.ID, r.Number, e.Outcome, e.Node, e.Call, e.Return, r.Node, r.Return, r.Rev)
		}
	}
}

// purgesHold: a revision whose purge was acknowledged or accepted is nowhere.
func (c *checker) purgesHold() {
	for _, d := range c.sorted() {
		for _, p := range d.purges {
			if !p.Outcome.Done() || p.Outcome == Accepted && c.h.duringLoss(p.Span) {
				continue
			}
			for i := range c.h.Copies {
				k := &c.h.Copies[i]
				for _, l := range k.Docs[d.id] {
					if k.DB == d.db && l.Rev == p.Rev {
						c.report("%s/%s: %s was purged (%s through %s at %v to %v) and is on %s", d.db, d.id, p.Rev, p.Outcome, p.Node, p.Call, p.Return, k.Node)
					}
				}
			}
		}
	}
}

// deletedDatabasesStayGone: no document outlives the database that it was
// written to.
func (c *checker) deletedDatabasesStayGone() {
	last := map[string]*Meta{} // acknowledged deletions
	for i := range c.h.Metas {
		m := &c.h.Metas[i]
		if m.Kind == Delete && m.Status == 200 && (last[m.DB] == nil || m.Call > last[m.DB].Call) {
			last[m.DB] = m
		}
	}
	written := map[string]map[int]*Edit{}
	for i := range c.h.Edits {
		e := &c.h.Edits[i]
		if m := last[e.DB]; m != nil && e.Outcome.Done() && e.Return < m.Call {
			if written[e.DB] == nil {
				written[e.DB] = map[int]*Edit{}
			}
			written[e.DB][e.Number] = e
		}
	}
	for i := range c.h.Copies {
		k := &c.h.Copies[i]
		for n, id := range k.Numbers {
			if e := written[k.DB][n]; e != nil {
				c.report("%s/%s: edit number %d of %v outlived the deletion of the database at %v, on %s", k.DB, id, n, e.Return, last[k.DB].Call, k.Node)
			}
		}
	}
}

// generation returns the number in front of a revision.
func generation(rev string) int {
	text, _, _ := strings.Cut(rev, "-")
	n, _ := strconv.Atoi(text) // every revision begins with a number
	return n
}

// better reports whether one live revision wins over another.
func better(a, b string) bool {
	if x, y := generation(a), generation(b); x != y {
		return x > y
	}
	return a > b
}
