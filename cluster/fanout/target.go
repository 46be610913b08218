package fanout

import "divan/shard/ring"

// Target is one copy of one range.
type Target struct {
	ring.Range
	Name string // of the copy, the same on every node that holds one
	Node string
}
