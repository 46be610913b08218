// Package wirepb holds the messages between nodes, generated from wire.proto by
// "make generate". Packages wire and replica alone use them.
package wirepb
