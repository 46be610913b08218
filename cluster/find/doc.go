// Package find answers Mango queries: it has the planner choose an index, asks one
// copy of every range of the ring for the documents that match, and merges what they
// say in order.
//
//   - Copies match, sort and cut documents (package shard/find); only the results for the
//     client travel. A copy never gives more rows than the whole answer may have.
//   - A query reads the copies that decide edits, because those have every edit that was
//     acknowledged; with update=false it reads those of this node.
//   - A copy that breaks off is replaced by another one, behind the last row that was
//     given out, or where the reading stood when nothing matched ([fanout.FailoverStream]).
//   - With r above 1 copies give ids only; each document is read from r copies, and
//     matched here.
//   - An index of full text is asked by package cluster/search, a page of hits at a time;
//     their documents are read as they are now, and matched here.
package find
