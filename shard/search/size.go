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
