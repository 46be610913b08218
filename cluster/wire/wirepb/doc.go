// Package wirepb holds the messages between nodes, generated from wire.proto by
// "make generate". Package wire alone uses them.
package wirepb
