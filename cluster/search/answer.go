package search

import (
	"math"

	"divan/shard/search"
	"divan/storage/fault"
)

// wellFormed refuses an answer that has not one part for each part of the request: a faulty
// node is not believed.
func wellFormed(req *search.Request, a *search.Answer) error {
	ok := len(a.Counts) == len(req.Counts) && len(a.Ranges) == len(req.Ranges)
	for i := range a.Ranges {
		ok = ok && len(a.Ranges[i]) == len(req.Ranges[i].Ranges)
	}
	if !ok {
		return errMalformed()
	}
	for i := range a.Groups {
		g := &a.Groups[i]
		if req.Group == nil || len(g.Order) != parts(req.Group.Sort) && req.Group.Names == nil {
			return errMalformed()
		}
		for k := range g.Hits {
			if err := sameParts(req, g.Hits[k].Order); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts returns how many values an order has.
func parts(order []search.Sort) int { return max(len(order), 1) }

func sameParts(req *search.Request, order []search.Value) error {
	if len(order) != parts(req.Sort) {
		return errMalformed()
	}
	for i := range order {
		if n := order[i].Number; math.IsNaN(n) || math.IsInf(n, 0) { // JSON has none
			return errMalformed()
		}
	}
	return nil
}

func errMalformed() error {
	return fault.New(fault.Internal, "a copy gave an answer to another full-text query")
}
