// Package memory bounds the memory that a node takes for data that others send: the bodies
// of requests, answers that wait for their clients, and what replications read from other
// servers.
//
// A Budget is all of it. Shares divide it among owners, which are accounts and addresses of
// clients without one; a Hold is the part that an owner has for one thing, such as a
// request.
package memory
