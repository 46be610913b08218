package cluster

import (
	"divan/shard"
)

// DocRows is the rows of a listing by id, in order:
//
//	for rows.Next() { use(rows.Row()) }
//	err := rows.Err()
//	rows.Close()
//
// It belongs to one goroutine.
type DocRows struct {
	Total     int64  // all documents that can be listed, regardless of the range; -1: not known
	Offset    int64  // documents before the first row; -1: not known
	UpdateSeq string // as a client may send it back as since; empty: not asked for, or not known

	source rowSource
	row    *shard.Row
	skip   int
	left   int // rows that may still be handed out; negative: no limit
	err    error
}

// rowSource is where the rows come from; next returns nil at the end.
type rowSource interface {
	next() (*shard.Row, error)
	close()
}

// Next moves to the next row. It returns false at the end and after an error.
func (r *DocRows) Next() bool {
	if r.left == 0 || r.err != nil {
		r.row = nil
		return false
	}
	for {
		r.row, r.err = r.source.next()
		if r.row == nil || r.err != nil {
			r.row, r.left = nil, 0
			return false
		}
		if r.skip > 0 {
			r.skip--
			continue
		}
		if r.left > 0 {
			r.left--
		}
		return true
	}
}

// Row returns the current row. It and what it refers to are valid until the
// next call of Next.
func (r *DocRows) Row() *shard.Row { return r.row }

// Err returns what ended the rows early, nil when there was nothing.
func (r *DocRows) Err() error { return r.err }

// Close ends the reading and waits for its goroutines. It must be called.
func (r *DocRows) Close() { r.source.close() }

// interval is the ids from lo up to but not including hi.
type interval struct {
	lo, hi  string
	bounded bool // hi counts
}

// spaceOf returns the ids that a query is about before its own bounds: those
// of its namespace, or of its partition.
func spaceOf(q *DocsQuery) interval {
	switch {
	case q.Partition != "":
		return interval{partitionStart(q.Partition), partitionEnd(q.Partition), true}
	case q.Namespace == DesignDocs:
		return interval{"_design/", "_design0", true}
	case q.Namespace == LocalDocs:
		return interval{"_local/", "_local0", true}
	default:
		return interval{}
	}
}

func (s interval) holds(id string) bool { return id >= s.lo && (!s.bounded || id < s.hi) }

// within returns the part of the space that a query selects. One that ends
// before it begins selects nothing; its beginning still counts for the offset.
func (s interval) within(q *DocsQuery) interval {
	lower, upper := q.StartKey, q.EndKey
	past, upTo := false, q.InclusiveEnd // whether a bound lies behind the id it names
	if q.Descending {
		lower, upper = upper, lower
		past, upTo = !q.InclusiveEnd, true
	}
	out := s
	if lower != nil {
		out.lo = s.clamp(behind(*lower, past))
	}
	if upper != nil {
		out.hi, out.bounded = s.clamp(behind(*upper, upTo)), true
	}
	return out
}

// clamp moves an id that lies outside of the space to its nearest border.
func (s interval) clamp(id string) string {
	if s.bounded && id > s.hi {
		return s.hi
	}
	return max(id, s.lo)
}

// behind returns id, or with past the smallest id that is greater.
func behind(id string, past bool) string {
	if past {
		return id + "\x00"
	}
	return id
}
