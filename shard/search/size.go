package search

// Size returns about how many bytes a hit takes.
func (h *Hit) Size() int {
	n := 64 + len(h.ID)
	for i := range h.Order {
		n += valueBytes + len(h.Order[i].Text)
	}
	for i := range h.Fields {
		n += 40 + len(h.Fields[i].Name) + len(h.Fields[i].Value)
	}
	for i := range h.Highlights {
		n += 40 + len(h.Highlights[i].Field)
		for _, p := range h.Highlights[i].Pieces {
			n += 16 + len(p)
		}
	}
	return n
}

// Size returns about how many bytes an answer takes.
func (a *Answer) Size() int {
	n := 0
	for i := range a.Hits {
		n += a.Hits[i].Size()
	}
	for i := range a.Counts {
		for k := range a.Counts[i].Values {
			n += a.Counts[i].Values[k].Size()
		}
	}
	for i := range a.Groups {
		n += a.Groups[i].Size()
	}
	return n
}

// Size returns about how many bytes a count takes.
func (c *Count) Size() int { return 32 + len(c.Value) }

// Size returns about how many bytes a group takes.
func (g *GroupHits) Size() int {
	n := 96 + len(g.By)
	for i := range g.Order {
		n += valueBytes + len(g.Order[i].Text)
	}
	for i := range g.Hits {
		n += g.Hits[i].Size()
	}
	return n
}
