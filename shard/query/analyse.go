package query

import "slices"

// What a planner asks about a selector. Fields are named as in the normal form.

// Empty reports whether the selector is {}, which matches every document.
func (s *Selector) Empty() bool { return s.root == nil }

// Fields returns the fields that the selector looks at, sorted.
func (s *Selector) Fields() []string {
	var out []string
	s.each(func(n *node) { out = append(out, n.field) })
	slices.Sort(out)
	return slices.Compact(out)
}

// each calls fn for each condition on a field of the document.
func (s *Selector) each(fn func(n *node)) {
	var walk func(n *node)
	walk = func(n *node) {
		if n.op == opField {
			fn(n)
			return
		}
		for _, kid := range n.kids {
			walk(kid)
		}
	}
	if s.root != nil {
		walk(s.root)
	}
}

// Text reports whether the selector needs a full-text index.
func (s *Selector) Text() bool { return s.root != nil && s.root.text() }

func (n *node) text() bool { return n.op == opDefault || slices.ContainsFunc(n.kids, (*node).text) }

// Special reports whether the selector looks at members of a document that are
// no part of its body: _id, _rev and the like.
func (s *Selector) Special() bool { return s.slots.special() }

// Special is the same of a list of fields.
func (f *Fields) Special() bool { return f == nil || f.slots.special() }

// special reports whether a slot is of a name that begins with an underscore, as
// far as the text shows.
func (s *slots) special() bool {
	return slices.ContainsFunc(s.names, func(name []byte) bool { return name[1] == '_' || name[1] == '\\' })
}

// Requires reports whether every document that a query by the selector returns has
// all of the fields.
func (s *Selector) Requires(fields []string) bool {
	if len(fields) == 0 {
		return true
	}
	return s.root != nil && (s.root.nothing() || len(s.root.lacking(fields)) == 0)
}

// nothing reports whether a match of n is impossible by an empty $or: alone, or beside
// an empty $in or $all. An empty $or beside conditions that can match is neutral.
func (n *node) nothing() bool {
	empty := func(kid *node) bool { return kid.op == opOr && len(kid.kids) == 0 }
	if n.op != opAnd {
		return empty(n)
	}
	return slices.ContainsFunc(n.kids, empty) && slices.ContainsFunc(n.kids, func(kid *node) bool {
		return kid.op == opField && (kid.kids[0].op == opIn || kid.kids[0].op == opAll) && string(kid.kids[0].arg.text) == "[]"
	})
}

// lacking returns those of the fields that a match of n may be without.
func (n *node) lacking(fields []string) []string {
	switch n.op {
	case opAnd:
		for _, kid := range n.kids {
			if len(fields) == 0 {
				return nil
			}
			fields = kid.lacking(fields)
		}
		return fields
	case opOr:
		if len(n.kids) == 0 {
			return fields
		}
		var out []string
		for _, kid := range n.kids {
			for _, f := range kid.lacking(fields) {
				if !slices.Contains(out, f) {
					out = append(out, f)
				}
			}
		}
		return out
	case opField:
		if kid := n.kids[0]; kid.op == opExists && !kid.flag {
			return fields
		}
		if i := slices.Index(fields, n.field); i >= 0 {
			return slices.Delete(slices.Clone(fields), i, i+1)
		}
	default:
	}
	return fields
}

// Indexable returns the fields that an index can look up for the selector as
// CouchDB sees it: those with a comparison, $beginsWith or $exists that holds
// for every match; sorted.
func (s *Selector) Indexable() []string {
	var out []string
	s.eachRequired(func(n *node) {
		switch n.kids[0].op {
		case opLt, opLte, opEq, opGte, opGt, opBeginsWith, opExists:
			out = append(out, n.field)
		default:
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// Constant reports whether an $eq makes a field the same in all matches.
func (s *Selector) Constant(field string) bool {
	found := false
	s.eachRequired(func(n *node) { found = found || n.field == field && n.kids[0].op == opEq })
	return found
}

// eachRequired calls fn for each condition that holds for every match.
func (s *Selector) eachRequired(fn func(n *node)) {
	var walk func(n *node)
	walk = func(n *node) {
		switch n.op {
		case opAnd:
			for _, kid := range n.kids {
				walk(kid)
			}
		case opField:
			fn(n)
		default:
		}
	}
	if s.root != nil {
		walk(s.root)
	}
}
