// Package designdocs keeps the design documents of databases in use, parsed, on
// each node, and never gives out what an acknowledged write has replaced.
//
// A [Cache] has one entry for a database: all its design documents, read from a
// majority of the copies of every range. See DESIGN.md for why an entry cannot be
// stale.
//
// LOCKS: Cache.mu guards maps and counters; nothing is called while it is held.
package designdocs
