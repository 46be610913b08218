package core

import "testing"

// TestForwardingSpace: replications that other nodes run for as long as they like leave space
// for other requests to the same node, and to others.
func TestForwardingSpace(t *testing.T) {
	var f forwarding
	n := 0
	for f.space("a", true).TryAcquire(forwardWeight) {
		n++
	}
	if n != 96 {
		t.Errorf("%d replications are forwarded to a node at a time", n)
	}
	const largest = min(maxForwarded*4/3+forwardWeight, forwardSpace) // it travels as base64
	if !f.space("a", false).TryAcquire(largest) || !f.space("b", true).TryAcquire(largest) {
		t.Error("they take the space of other requests")
	}
}
