package core

import (
	"context"
	"time"

	"divan/replicator/peruser"
)

// Cluster is the API's view of the other nodes. The root implements it; without one
// (Deps.Cluster is nil) the node stands alone.
type Cluster interface {
	// Invitation returns what a node is told that is to join this node's
	// cluster.
	Invitation() Invitation

	// Accept is called on a node that was invited: it checks whether this node
	// can join and stores the invitation durably. The caller has the node
	// restart (Deps.Restart) once the answer is written, and the node then
	// joins. An invitation to the cluster that the node is a member of already
	// is accepted, and changes nothing. The refusals are fault.BadRequest.
	Accept(ctx context.Context, inv Invitation) (NodeInfo, error)

	// Members returns the names of the nodes that are alive as far as this
	// node can tell, itself among them, sorted.
	Members() []string

	// Ask sends a request to a service of another node and returns its answer.
	// The error is fault.NodeDown when the node cannot be reached.
	Ask(ctx context.Context, node, service string, request []byte) ([]byte, error)

	// Seeding returns how far the node has come with its seed list.
	Seeding() SeedStatus
}

// Invitation holds the data that a node needs to join a cluster.
type Invitation struct {
	Cookie string            // the cluster's secret
	UUID   string            // of the cluster
	Seeds  map[string]string // names of members to the addresses (host:port) of their cluster ports
}

// NodeInfo is an invited node's description of itself.
type NodeInfo struct {
	Name    string // name@host
	Address string // host:port of its cluster port
}

// SeedStatus tells how far a node has come with [cluster] seedlist.
type SeedStatus struct {
	Joined bool   // the node belongs to its cluster; true also without a seed list
	Seeds  []Seed // the nodes of the list, without this one
}

// Seed is one node of a seed list.
type Seed struct {
	Name   string    // name@host
	Asked  time.Time // last; zero: not yet
	Answer string    // "ok", or what went wrong; empty: not asked yet
}

// Task is an operation that runs in the background (api.md section 4.2).
type Task struct {
	Node, PID          string
	Type               string // database_compaction, …
	Database           string // the name of the copy
	DesignDocument     string // of an index; may be empty
	Index              string // what that calls it; may be empty
	Phase              string // may be empty
	FailedDocument     string // of an index that stays at a document; empty: there is none
	Error              string // what went wrong with it
	LeftOut            uint64 // documents that an index holds nothing of, because they cannot be indexed
	ChangesDone        uint64
	TotalChanges       uint64
	StartedOn, Updated time.Time
}

// Figures are numbers of the node that only the other parts of it know.
type Figures struct {
	OpenDatabases      int               // stores held open
	CacheBytes         int64             // of blocks of stores in memory
	MemtableBytes      int64             // that the memtables of open stores take at most
	OpenSmall          int               // small stores held open
	SmallBytes         int64             // that these take in memory, about
	SmallDamaged       bool              // files of small stores are damaged, and not yet written anew
	BitsCorrected      int64             // bits of files of stores that were set right
	ScriptEngines      int               // JavaScript engines that exist
	ScriptBytes        int64             // which they have outside of Go's heap
	IndexLeftOut       uint64            // documents that indexes have left out since the start
	OrphanedShards     int               // that no database names and that were set aside
	DiskFree, DiskSize uint64            // bytes of the disk of the data directory; 0: it does not tell
	Commits            uint64            // groups of writes that were made durable
	LogLines           map[string]uint64 // lines of the log, by level
	ReplicationBacklog int               // pushes between copies that run or wait
	ReplicationLag     uint64            // changes of copies of this node that other copies are known to lack
	PerUser            peruser.Figures   // what was done for [couch_peruser]
}
