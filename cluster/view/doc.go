// Package view answers queries of views: it asks one copy of every range, merges
// what they say in order, and makes one answer of what they have reduced.
//
//   - A query reads the copies that decide edits, because those have every edit that
//     was acknowledged. One that takes the index as it is reads the same ones, so that
//     answers of different nodes do not go back and forth: every answer is stable.
//   - A copy that breaks off is replaced by another one, behind the row that was
//     given out last ([fanout.FailoverStream]).
//   - Rows stay in the batches they came in; the merge sees their keys. No row is read that
//     is not asked for: copies are told how many rows will be wanted.
package view
