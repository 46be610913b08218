// Package replica is what can be asked of the copies that a node holds. Each
// operation on a copy is declared once, as an Operation: what it asks for and
// answers, in which state the copy has to be, what does it on a copy of this node,
// and which messages carry it to another one. Refusals, the local call, the client
// and the server follow from that.
//
// A new operation takes: a method of what Held has; its messages and its number in
// wire.proto; its declaration here, in a file of its own, and a line in all; and
// whoever asks for it.
package replica
