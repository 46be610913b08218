package replicator

import (
	"sync/atomic"

	"divan/replicator/protocol"
	"divan/replicator/remote"
	"divan/replicator/scheduler"
)

// counters count what happens to documents.
type counters struct {
	dbsFound, dbScans, dbChanges, completed, failed atomic.Uint64

	network remote.Figures
	runs    protocol.Figures
}

func (c *counters) stateWritten(state string) {
	switch state {
	case Completed:
		c.completed.Add(1)
	case Failed:
		c.failed.Add(1)
	}
}

// Figures are numbers for the statistics of the node.
type Figures struct {
	Jobs           scheduler.Figures
	DatabasesFound uint64 // replicator databases
	Scans          uint64 // times that all documents of one were read
	Changes        uint64 // documents that were looked at
	Completed      uint64 // documents that were told that their replication is done
	Failed         uint64 // or cannot begin
	Network        *remote.Figures
	Runs           *protocol.Figures
}

// Figures returns the numbers of now.
func (r *Replicator) Figures() Figures {
	return Figures{
		Jobs: r.Jobs.runner.Figures(), DatabasesFound: r.stats.dbsFound.Load(), Scans: r.stats.dbScans.Load(), Changes: r.stats.dbChanges.Load(),
		Completed: r.stats.completed.Load(), Failed: r.stats.failed.Load(),
		Network: &r.stats.network, Runs: &r.stats.runs,
	}
}
