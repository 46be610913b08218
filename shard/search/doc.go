// Package search keeps full-text indexes of the copies of a node and answers queries of
// one copy.
//
// An Indexer makes fields of a document. What is stored of them is in package postings;
// which documents are read when is the work of package index. A query is a tree of package
// syntax; its words are analysed here, per field, by the Analyzer that the fields of
// documents went through.
//
// A query is evaluated chunk by chunk, document by document in the order of their numbers. What
// matches many terms (prefixes, wildcards, ranges) becomes a set of 8 KB for each chunk, so that
// the memory of a query does not grow with the number of matches: it is its lists, its sets, and
// the hits that are asked for. A list is read once, no matter how many clauses have its term
// (words.go), a column once, no matter how many parts of a request read it. All of that is counted,
// and bounded (space.go). Queries that look at much, or need much memory, wait for their turns
// (turn.go); others do not.
//
// A query of one term in the order of scores looks only at the runs of its lists that may have a
// hit (block_max.go). Hits with equal values are in the order of their ids, which are read when
// all is collected (ties.go).
//
// Collectors take what matches: the first hits (top.go), groups (group.go), counts of facets
// (facet_counts.go) and of ranges (facet_ranges.go). Filters say what is looked at: drilldown.go, and a
// partition by its ids (ids.go), which is also how _id is queried. Compare and CompareGroups
// are the orders in which the answers of copies are merged.
package search
