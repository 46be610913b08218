package fanout

import "divan/storage/fault"

// NoCopy says that no copy of a range can be asked.
func NoCopy() error {
	return fault.New(fault.Unavailable, "No copy of the shard can answer now.")
}

// NodeDown says that a node cannot be asked.
func NodeDown(node string) error {
	return fault.Newf(fault.NodeDown, "Node %s cannot be reached.", node)
}

// Closed says that nothing more is asked.
func Closed() error { return fault.New(fault.Closed, "The node is shutting down.") }

// TimeoutText is the reason of a request that took longer than it may.
const TimeoutText = "The request could not be processed in a reasonable amount of time."
