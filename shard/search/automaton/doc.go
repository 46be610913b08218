// Package automaton matches terms by regular expressions in the syntax of Lucene
// (spec/search.md 8.1): . * + ? {n,m} [ ] ( ) |, "literal", ~ complement, & intersection,
// <n-m> an interval of numbers, @ any string, # nothing; that of Lucene 9 has \d \s \w and
// \D \S \W as well. A match is that of a whole term.
//
// An expression is matched by its derivatives: what is left of it behind a character is
// again an expression, and complement and intersection need nothing of their own. Expressions
// that are written alike are one node; those that begin a term are states, and where a
// character leads from a state is remembered. States are made as terms need them.
//
//	A1  the nodes and transitions of a Matcher are bounded. When there are too many, all
//	    but the expression at hand is forgotten and made anew.
//	A2  the work for a character is bounded by the nodes: an expression whose next
//	    derivative does not fit is refused, with a *fault.Error, and so is one that has
//	    taken very much work for all terms together.
//
// The package is pure.
package automaton
