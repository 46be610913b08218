// Package remote is a database of another server as an endpoint of a
// replication, over HTTP/1.1: this server, CouchDB from 1.x on, PouchDB Server,
// Cloudant. What a peer cannot do is noticed once and done in the older way.
//
// A request that fails because of the connection, an overload or an error of the server is repeated
// with growing delays before the caller hears of it; answers are read as they come, so that their
// size does not matter.
//
// LOCKS: Network.mu, limiter.mu and session.mu are taken alone and never held
// over I/O.
package remote
