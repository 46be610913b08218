package history

import "slices"

// readsSeeWrites: while nothing is broken, a read sees what was acknowledged
// before it began when r and w overlap.
func (c *checker) readsSeeWrites() {
	for _, d := range c.sorted() {
		if c.h.temporary(d.db) {
			continue
		}
		for _, r := range d.reads {
			for _, calm := range c.h.Calm {
				if r.Within(calm) {
					c.readSees(d, r, calm)
				}
			}
		}
	}
}

func (c *checker) readSees(d *document, r *Read, calm Span) {
	for _, e := range d.edits {
		if e.Outcome != Acked || e.Quorum+r.Quorum <= copiesOfAll || e.Deleted || !e.Within(calm) || e.Return > r.Call || d.disturbed(e, r) {
			continue
		}
		if r.Rev == e.Rev || slices.Contains(r.Ancestors, e.Rev) || r.Rev != "" && better(r.Rev, e.Rev) {
			continue
		}
		c.report("%s/%s: %s was acknowledged through %s at %v; read through %s at %v with r=%d: %d %s",
			d.db, d.id, e.Rev, e.Node, e.Return, r.Node, r.Call, r.Quorum, r.Status, r.Rev)
	}
}

// disturbed reports whether something may have hidden an edit from a read: a purge that
// was asked for before the read ended, or a deletion asked for before then that was not
// refused and did not end before the edit began.
func (d *document) disturbed(e *Edit, r *Read) bool {
	deleted := func(o *Edit) bool {
		return o.Deleted && o.Call <= r.Return && o.Return >= e.Call && o.Outcome != Conflict && o.Outcome != Refused
	}
	purged := func(p *Purge) bool { return p.Call <= r.Return }
	return slices.ContainsFunc(d.edits, deleted) || slices.ContainsFunc(d.purges, purged)
}

// registersGrow: a number that was acknowledged with w=2 is not forgotten. It
// may be when a disk was lost: local documents are not copied to another.
func (c *checker) registersGrow() {
	acked := map[string][]*Register{}
	for i := range c.h.Registers {
		r := &c.h.Registers[i]
		if r.Write && r.Outcome == Acked {
			acked[r.Path] = append(acked[r.Path], r)
		}
	}
	for i := range c.h.Registers {
		r := &c.h.Registers[i]
		if r.Write || r.Outcome != Acked || !c.h.calm(r.Span) {
			continue
		}
		for _, w := range acked[r.Path] {
			loss := slices.ContainsFunc(c.h.Losses, func(s Span) bool { return w.Call <= s.Return && r.Return >= s.Return })
			if w.Return <= r.Call && w.Value > r.Value && !loss {
				c.report("%s: %d was acknowledged at %v, %d was read at %v", r.Path, w.Value, w.Return, r.Value, r.Call)
			}
		}
	}
}

func (h *History) calm(s Span) bool { return slices.ContainsFunc(h.Calm, s.Within) }

// noFailure: no internal error ever, and while nothing is broken every request
// is answered, and with enough copies.
func (c *checker) noFailure() {
	for i := range c.h.Failures {
		t := &c.h.Failures[i]
		if t.Status == 500 || c.h.calm(t.Span) {
			c.report("%s through %s at %v to %v: %d %s", t.Request, t.Node, t.Call, t.Return, t.Status, t.Text)
		}
	}
	for i := range c.h.Edits {
		if e := &c.h.Edits[i]; e.Outcome == Accepted && c.h.calm(e.Span) && !c.h.temporary(e.DB) {
			c.report("%s/%s: %s through %s at %v to %v was only accepted while nothing was broken", e.DB, e.ID, e.Rev, e.Node, e.Call, e.Return)
		}
	}
}
