package search

import (
	"encoding/binary"
	"hash/crc32"

	"divan/shard/ring"
	"divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// Ranges stands for the ranges of the ring whose copies were asked: a checksum of them. A copy
// reckons scores from what it has itself, so that pages in an order by score fit together only as
// long as the ranges are the same: a document that moves to a copy of another range by a split or
// a merge has another score there.
type Ranges uint32

// AnyRanges are those of pages whose order is the same whichever ranges there are.
const AnyRanges Ranges = 0

// rangesOf returns those of the copies that are asked for each range.
func rangesOf(sources [][]ring.Replica) Ranges {
	var b []byte
	for _, copies := range sources {
		if len(copies) > 0 {
			b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, copies[0].Begin), copies[0].End)
		}
	}
	return max(Ranges(crc32.ChecksumIEEE(b)), AnyRanges+1)
}

func errOtherRanges() error {
	return fault.New(fault.BadRequest, "The bookmark cannot be continued: a shard of the database was split or merged meanwhile, which changes scores. Begin again without a bookmark, or sort by a field.")
}

// dependsOnRanges reports whether the order of hits, or which documents are hits, depends on what
// else is in a copy. What cannot be parsed is refused by the copies.
func dependsOnRanges(req *search.Request, dialect syntax.Dialect) bool {
	q, err := syntax.Parse(req.Query, dialect)
	return err == nil && depends(q, byScore(req.Sort))
}

func byScore(order []search.Sort) bool {
	for i := range order {
		if order[i].By == search.ByScore {
			return true
		}
	}
	return len(order) == 0
}

// depends is dependsOnRanges for a query; scored says that its scores count. Of a fuzzy word it is
// the nearest terms of the copy that match.
func depends(q syntax.Query, scored bool) bool {
	switch q := q.(type) {
	case syntax.Term, syntax.Phrase:
		return scored
	case syntax.Fuzzy:
		return scored || q.Edits > 0
	case syntax.Boosted:
		return depends(q.Query, scored)
	case *syntax.Boolean:
		for _, c := range q.Clauses {
			if depends(c.Query, scored) {
				return true
			}
		}
	}
	return false
}
