// Package quorum holds the deciders of clustered operations: what the answers
// of several copies amount to. Everything here is pure: answers go in, a
// verdict comes out; no I/O, no clock, no goroutine. The coordinator (package
// cluster) asks the copies and does what the verdict says.
//
//   - [Write]: is an edit committed, accepted, refused or lost.
//   - [Read]: which of several answers about one document is the answer.
//   - [Cover]: one copy per range, so that the ring is covered exactly once.
//   - [Merge]: one ordered sequence of rows from several ordered ones.
package quorum
