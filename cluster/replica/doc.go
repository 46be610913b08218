// Package replica declares the operations on the copies that a node holds. Each is declared once,
// as an Operation: its request and its answer, the state in which the copy has to be, the function
// that does it on a copy of this node, and the messages that carry it to another one. Refusals, the
// local call, the client and the server follow from that.
//
// A new operation takes: a method of what Held has; its messages and its number in wire.proto; its
// declaration here, in a file of its own, and a line in all; and a caller.
package replica
