// Package memory bounds what a node takes of its memory for what others send: the
// bodies of requests, and what replications read from other servers.
//
// A Budget is all of it. A Claim is what one taker has, such as a request. Shares
// divide a part of a Budget among owners, such as the accounts of replications; a
// Hold is what an owner has for one thing.
package memory
