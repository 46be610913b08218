package cluster

import (
	"context"

	"divan/cluster/fanout"
	"divan/cluster/peers"
	"divan/cluster/replica"
	"divan/shard/ring"
)

// replicas gives the copies of this node, and those of the nodes that can be reached.
type replicas struct {
	node    string // this one
	local   ownCopies
	others  peers.Others
	here    peers.Presence
	leave   func()                                 // ends the watching of other nodes
	latency struct{ reads, writes fanout.Latency } // of answers of other nodes
	repair  Repair                                 // nil: there is no repair
}

// ownCopies is the copies on this node's disk; *replica.Local is them.
type ownCopies interface {
	replica.Copies
	Create(ctx context.Context, r ring.Replica, partitioned bool) error
	Names() ([]string, error) // sorted
	Has(name string) bool
	DiskFull() error
}

// Repair brings copies in line with each other.
type Repair interface {
	// Missed is told that a copy on a node lacks something that another copy of
	// its range has. It returns at once.
	Missed(copy, node string)
	// Sync starts a round of synchronisation for copies that this node or
	// others hold, by name. It returns before the round is over.
	Sync(ctx context.Context, copies []string) error
}

// meet makes other nodes known.
func (r *replicas) meet(o peers.Others) {
	if r.leave != nil {
		r.leave()
	}
	r.others, r.leave = o, o.Subscribe(r.here.Changed)
	r.here.Changed("", true)
}

// replica returns a copy; it is Away when its node cannot be reached.
func (r *replicas) replica(t ring.Replica) replica.Copy {
	return replica.Of(r.copies(t.Node), t)
}

// copies returns the copies of a node, nil when it cannot be reached.
func (r *replicas) copies(node string) replica.Copies {
	if node == r.node {
		return r.local
	}
	return r.others.Find(node)
}

// missed notes that a copy does not have what other copies of its range have.
func (r *replicas) missed(t ring.Replica) {
	if r.repair != nil {
		r.repair.Missed(t.Name, t.Node)
	}
}
