package cluster

import (
	"context"

	"divan/cluster/meta"
)

// Names returns the names of the databases in a range, in byte order, for
// _all_dbs. A start behind the end selects nothing. The names are those that
// this node knows of: one created through another node a moment ago may be
// missing.
func (c *Coordinator) Names(_ context.Context, r NameRange) ([]string, error) {
	all := c.meta.Databases()
	lower, upper := r.StartKey, r.EndKey
	if r.Descending {
		lower, upper = upper, lower
	}
	// Of the two bounds only the end of the listing can be left out.
	lo, hi := 0, all.Len()
	if lower != nil {
		lo = bound(all, *lower, r.Descending && !r.InclusiveEnd)
	}
	if upper != nil {
		hi = bound(all, *upper, r.Descending || r.InclusiveEnd)
	}
	skip := max(r.Skip, 0)
	if r.Descending {
		hi -= skip
	} else {
		lo += skip
	}
	if lo >= hi {
		return nil, nil
	}
	if r.Limit >= 0 && r.Limit < hi-lo {
		if r.Descending {
			lo = hi - r.Limit
		} else {
			hi = lo + r.Limit
		}
	}
	out := make([]string, 0, hi-lo)
	rows := all.Slice(lo, hi)
	if r.Descending {
		rows = all.Backward(lo, hi)
	}
	for db := range rows {
		out = append(out, db.Name)
	}
	return out, nil
}

// bound returns the place of the first name that is not below key, or with
// past, that is above it.
func bound(all meta.Databases, key string, past bool) int {
	at := all.Index(key)
	if past {
		if _, there := all.Get(key); there {
			at++
		}
	}
	return at
}
