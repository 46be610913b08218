package placer

import "divan/shard/ring"

// None is the node of a copy that is nowhere.
const None = -1

// Cluster is the present state of a cluster. Nodes and databases are named by
// their index in it.
type Cluster struct {
	Nodes     []Node
	Databases []Database
	Shards    []Shard
}

// Node is a node of the cluster.
type Node struct {
	ring.Node       // draining: all it has is to leave it
	Lost      bool  // it never comes back: what it had is made anew from other copies
	Away      bool  // it does not answer: it has its share of the goals, and gets nothing now. Pin what it has
	Weight    int64 // its share of the bytes, relative to others; 0 stands for 1
}

// Database holds the properties that all shards of a database share.
type Database struct {
	Placement ring.Placement // empty: its copies are spread evenly over the zones
}

// Shard is a range of a database. Ranges of one database may overlap.
type Shard struct {
	ring.Range
	Database int32
	Copies   []Copy // as many as there are to be
}

// Copy is a copy of a shard.
type Copy struct {
	Node   int32 // None: it is still to be made
	Pinned bool  // something else works on it: it counts and stays
	Bytes  int64 // of one that is lost or to be made: what another copy has
	Load   int64 // reads and writes per second; 0 when not known
}

// Options are the aims of a plan.
type Options struct {
	// Tolerance is how far a node may be from its goal, as a part of that: 0.05 when 0.
	Tolerance float64
	// LeavingOnly moves nothing but what has to leave its node wherever that is: copies on nodes that are lost or
	// drained, and second copies of a point.
	LeavingOnly bool
}

const defaultTolerance = 0.05
