// Package search answers full-text queries of databases, of _search and _nouveau: it asks one
// copy of every range for its best hits, and merges them with their facets and groups.
//
//   - A query reads the copies that decide edits, as one of a view does: those have every edit
//     that was acknowledged, and answers of different nodes do not go back and forth.
//   - A copy that breaks off is replaced by another one, behind the hit that was taken last
//     ([fanout.FailoverStream]).
//   - Scores are those of a copy: what they know of terms is not shared. Equal places are in
//     the order of ids, so that a position means the same on every node.
//   - Pages in an order by score go on only while the ranges are those of the first page
//     ([Ranges]): behind a split or a merge the next page is refused.
package search
