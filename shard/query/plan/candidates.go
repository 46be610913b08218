package plan

import (
	"cmp"
	"slices"
	"strconv"

	"divan/storage/doc"
)

// ranked is a candidate that was not chosen, as _explain shows it.
type ranked struct {
	*candidate
	group group
	rank  int
}

// group is why a candidate was not chosen, in the order in which _explain ranks them.
type group int

const (
	chosenType group = iota // usable, of the type that was chosen
	otherType
	excluded // usable, but use_index names others
	unusable
	outOfScope
	partialOnly
	groups
)

// group returns why a candidate was not chosen.
func (c *chooser) group(x *candidate) group {
	w := c.winner
	switch {
	case slices.Contains(x.reasons, isPartial):
		return partialOnly
	case slices.Contains(x.reasons, scopeMismatch):
		return outOfScope
	case !c.usable(x):
		return unusable
	case w != nil && w.named(c.find.UseIndex) && !x.named(c.find.UseIndex):
		return excluded
	case w == nil || x.Kind != w.Kind:
		return otherType
	default:
		return chosenType
	}
}

// usable reports whether CouchDB takes an index for usable. It takes _all_docs for it
// whenever the order does not matter.
func (c *chooser) usable(x *candidate) bool {
	return len(x.reasons) == 0 || x.AllDocs() && len(c.find.Sort) == 0
}

// ranking returns the candidates that were not chosen, with their places: each of the
// chosen type has one of its own, each other group one for all.
func (c *chooser) ranking() []ranked {
	var out []ranked
	var members [groups]int
	for _, x := range slices.SortedStableFunc(slices.Values(c.all), rank) {
		if x == c.winner {
			continue
		}
		g := c.group(x)
		members[g]++
		out = append(out, ranked{candidate: x, group: g, rank: members[chosenType]})
	}
	places := [groups]int{otherType: max(1, members[chosenType]+min(1, len(c.all)-len(out)))}
	for g := excluded; g < groups; g++ {
		places[g] = places[g-1] + min(1, members[g-1])
	}
	for i := range out {
		if x := &out[i]; x.group != chosenType {
			x.rank = places[x.group]
		}
	}
	slices.SortStableFunc(out, func(a, b ranked) int { // as CouchDB lists them
		return cmp.Or(cmp.Compare(b.Design, a.Design), cmp.Compare(b.Name, a.Name))
	})
	return out
}

// reason tells why a candidate was not chosen.
func (c *chooser) reason(x *ranked) string {
	switch x.group {
	case partialOnly:
		return isPartial
	case outOfScope:
		return scopeMismatch
	case unusable:
		return x.reasons[0]
	case excluded:
		return excludedByUser
	case otherType:
		return unfavoredType
	default:
	}
	switch w := c.winner; {
	case x.prefix < w.prefix || c.impossible == "" && x.prefix < len(c.indexable):
		return lessOverlap
	case len(x.Columns) > len(w.Columns):
		return tooManyFields
	default:
		return comesAfter
	}
}

// appendCandidates appends the indexes that were not chosen.
func (c *chooser) appendCandidates(dst []byte) []byte {
	for i, x := range c.ranking() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = x.AppendJSON(append(dst, `{"index":`...))
		dst = append(dst, `,"analysis":{"usable":`...)
		dst = appendBool(dst, x.group <= excluded)
		dst = doc.AppendString(append(dst, `,"reasons":[{"name":`...), c.reason(&x))
		dst = append(dst, `}],"ranking":`...)
		dst = strconv.AppendInt(dst, int64(x.rank), 10)
		dst = append(dst, `,"covering":`...)
		if x.Kind != JSON {
			dst = append(dst, "null"...)
		} else {
			dst = appendBool(dst, x.holds(c.find.names))
		}
		dst = append(dst, "}}"...)
	}
	return dst
}

// holds reports whether the fields of an answer are all in the index. No fields: the
// whole document is wanted.
func (x *Index) holds(fields []string) bool {
	columns := x.Names()
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(name string) bool { return name != "_id" && !slices.Contains(columns, name) })
}
