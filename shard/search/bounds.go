package search

import (
	"strconv"

	"divan/storage/fault"
)

// What a request may have at most. Each costs something for each document that matches, or for
// each hit.
const (
	MaxParts  = 1000   // of the order, of counts, of ranges by field, of drilldown, of highlights
	maxRanges = 10_000 // of all fields
)

// check refuses a request with too many parts.
func (r *Request) check() error {
	group, highlight, ranges := 0, 0, 0
	if r.Group != nil {
		group = len(r.Group.Sort)
	}
	if r.Highlight != nil {
		highlight = len(r.Highlight.Fields)
	}
	for i := range r.Ranges {
		ranges += len(r.Ranges[i].Ranges)
	}
	for _, n := range [...]int{len(r.Sort), group, len(r.Counts), len(r.Ranges), len(r.Drilldown), highlight} {
		if n > MaxParts {
			return ErrParts(MaxParts)
		}
	}
	if ranges > maxRanges {
		return ErrParts(maxRanges)
	}
	return nil
}

// ErrParts is the error of a list with more than so many parts.
func ErrParts(most int) error {
	return fault.New(fault.BadRequest, "The query has too many parts: a list may have up to "+strconv.Itoa(most)+".")
}
