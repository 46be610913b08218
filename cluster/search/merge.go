package search

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"divan/shard/search"
	"divan/storage/fault"
)

// maxResultBytes is how much the hits and facets of an answer may take, about.
const maxResultBytes = 64 << 20

func errTooLarge() error {
	return fault.New(fault.BadRequest, "The answer is too large: ask for fewer hits at a time, and go on with the bookmark.")
}

// hits merges the best hits of all ranges, and adds up what is counted.
func (r *request) hits() (*Found, error) {
	parts, err := r.open(r.req)
	if err != nil {
		return nil, err
	}
	defer closeAll(parts)
	out := &Found{Asked: r.ranges}
	if err := r.count(&out.Answer, parts); err != nil {
		return nil, err
	}
	for len(out.Hits) < r.req.Limit {
		best := -1
		for i, p := range parts {
			h, err := p.hit()
			if err != nil {
				return nil, r.db.Asking().Explain(r.ctx, err)
			}
			if h == nil {
				continue
			}
			if best < 0 || search.Compare(r.req.Sort, &h.Position, &parts[best].rows[0].Position) < 0 {
				best = i
			}
		}
		if best < 0 {
			break
		}
		h, size, err := parts[best].take()
		if err == nil {
			err = r.grow(size)
		}
		if err != nil {
			return nil, err
		}
		out.Hits = append(out.Hits, h)
	}
	return out, nil
}

// count adds up what the ranges tell before their hits.
func (r *request) count(out *search.Answer, parts []*part) error {
	out.Counts = make([]search.FieldCounts, len(r.req.Counts))
	out.Ranges = make([]search.RangeCounts, len(r.req.Ranges))
	for i := range out.Ranges {
		out.Ranges[i] = make(search.RangeCounts, len(r.req.Ranges[i].Ranges))
	}
	for _, p := range parts {
		a := &p.Head.Answer
		out.Total += a.Total
		out.Waited = max(out.Waited, a.Waited)
		for i := range a.Ranges {
			for k, n := range a.Ranges[i] {
				out.Ranges[i][k] += n
			}
		}
		for i := range a.Counts {
			into := &out.Counts[i]
			into.Known = into.Known || a.Counts[i].Known
			into.Values = addCounts(into.Values, a.Counts[i].Values)
		}
	}
	for i := range out.Counts {
		for k := range out.Counts[i].Values {
			if err := r.grow(out.Counts[i].Values[k].Size()); err != nil {
				return err
			}
		}
	}
	return nil
}

// addCounts merges two lists in the order of their values.
func addCounts(a, b []search.Count) []search.Count {
	if len(a) == 0 {
		return b
	}
	out := make([]search.Count, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch order := strings.Compare(a[0].Value, b[0].Value); {
		case order < 0:
			out, a = append(out, a[0]), a[1:]
		case order > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, search.Count{Value: a[0].Value, Count: a[0].Count + b[0].Count}), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// groups finds the best groups over all ranges first, and then the hits of those.
func (r *request) groups() (*Found, error) {
	total, names, err := r.bestGroups()
	if err != nil {
		return nil, err
	}
	out := &Found{}
	out.Total = total
	if len(names) == 0 {
		return out, nil
	}
	req := r.req
	group := *req.Group
	group.Names, req.Group = names, &group
	parts, err := r.open(req)
	if err != nil {
		return nil, err
	}
	defer closeAll(parts)
	out.Total, out.Groups = 0, make([]search.GroupHits, len(names))
	at := map[search.GroupName]*search.GroupHits{}
	for i, name := range names {
		out.Groups[i].GroupName, at[name] = name, &out.Groups[i]
	}
	for _, p := range parts {
		out.Total += p.Head.Total
		out.Waited = max(out.Waited, p.Head.Waited)
		for i := range p.Head.Groups {
			from := &p.Head.Groups[i]
			into := at[from.GroupName]
			if into == nil {
				return nil, errMalformed()
			}
			into.Total += from.Total
			into.Hits = append(into.Hits, from.Hits...)
		}
	}
	for i := range out.Groups {
		g := &out.Groups[i]
		slices.SortFunc(g.Hits, func(a, b search.Hit) int { return search.Compare(req.Sort, &a.Position, &b.Position) })
		cut := g.Hits[min(len(g.Hits), req.Limit):]
		g.Hits = g.Hits[:len(g.Hits)-len(cut)]
		clear(cut)
		if err := r.grow(g.Size()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bestGroups is the first pass.
func (r *request) bestGroups() (total uint64, names []search.GroupName, err error) {
	req := r.req
	group := *req.Group
	group.Names, req.Group, req.Limit = nil, &group, 0
	parts, err := r.open(req)
	if err != nil {
		return 0, nil, err
	}
	defer closeAll(parts)
	best := map[search.GroupName]*search.GroupHits{}
	for _, p := range parts {
		total += p.Head.Total
		for i := range p.Head.Groups {
			g := &p.Head.Groups[i]
			if was, ok := best[g.GroupName]; !ok || search.CompareGroups(group.Sort, g, was) < 0 {
				best[g.GroupName] = g
			}
		}
	}
	order := slices.SortedFunc(maps.Values(best), func(a, b *search.GroupHits) int { return search.CompareGroups(group.Sort, a, b) })
	for _, g := range order[:min(len(order), group.Limit)] {
		names = append(names, g.GroupName)
	}
	closeAll(parts)
	r.held.reduce(0)
	return total, names, nil
}

// Largest returns the n largest counts, of equal ones those whose values come first.
func Largest(counts []search.Count, n int) []search.Count {
	out := slices.Clone(counts)
	slices.SortFunc(out, func(a, b search.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	return out[:min(n, len(out))]
}
