package text

import "divan/shard/search/syntax"

// maxClauses bounds the clauses of one level; the parser of queries takes 1024.
const maxClauses = 512

// A query that finds nothing is nil here, one that finds everything is syntax.All.

func isAll(q syntax.Query) bool { return q == syntax.Query(syntax.All{}) }

// and returns what finds what all of the queries find.
func and(list ...syntax.Query) syntax.Query {
	var some []syntax.Query
	for _, q := range list {
		switch {
		case q == nil:
			return nil
		case !isAll(q):
			some = append(some, q)
		}
	}
	if len(some) == 0 {
		return syntax.All{}
	}
	return level(some, syntax.Plus)
}

// or returns what finds what any of the queries finds.
func or(list ...syntax.Query) syntax.Query {
	var some []syntax.Query
	for _, q := range list {
		switch {
		case q == nil:
		case isAll(q):
			return q
		default:
			some = append(some, q)
		}
	}
	return level(some, syntax.Plain)
}

// level combines queries, on several levels when there are too many for one.
func level(list []syntax.Query, m syntax.Modifier) syntax.Query {
	for len(list) > maxClauses {
		var next []syntax.Query
		for len(list) > 0 {
			n := min(len(list), maxClauses)
			next = append(next, level(list[:n], m))
			list = list[n:]
		}
		list = next
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	b := &syntax.Boolean{}
	for _, q := range list {
		b.Clauses = append(b.Clauses, syntax.Clause{Modifier: m, Query: q})
	}
	return b
}

// without returns what finds what q finds and the other does not.
func without(q, other syntax.Query) syntax.Query {
	if q == nil || other == nil {
		return q
	}
	return &syntax.Boolean{Clauses: []syntax.Clause{{Modifier: syntax.Plus, Query: q}, {Modifier: syntax.Negated, Query: other}}}
}
