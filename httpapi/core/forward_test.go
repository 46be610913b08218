package core

import "testing"

// TestForwardingRoom: replications that other nodes run for as long as they like leave room
// for other requests to the same node, and to others.
func TestForwardingRoom(t *testing.T) {
	var f forwarding
	n := 0
	for f.room("a", true).TryAcquire(forwardWeight) {
		n++
	}
	if n != 96 {
		t.Errorf("%d replications are forwarded to a node at a time", n)
	}
	const largest = min(maxForwarded*4/3+forwardWeight, forwardRoom) // it travels as base64
	if !f.room("a", false).TryAcquire(largest) || !f.room("b", true).TryAcquire(largest) {
		t.Error("they take the room of other requests")
	}
}
