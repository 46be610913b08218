package protocol

import (
	"sync"

	"divan/replicator/endpoint"
)

// Stats are the figures of a replication. Those that count go on from the
// checkpoint it started at.
type Stats struct {
	RevisionsChecked int64
	MissingFound     int64
	DocsRead         int64
	DocsWritten      int64
	DocWriteFailures int64
	BulkGetDocs      int64
	BulkGetAttempts  int64
	ChangesPending   int64        // -1: unknown
	CheckpointedSeq  endpoint.Seq // where another run would start
	SourceSeq        endpoint.Seq // read to here
	ThroughSeq       endpoint.Seq // everything up to here is on the target
}

// Progress holds the figures of a run while it goes on. It is safe for
// concurrent use.
type Progress struct {
	mu    sync.Mutex
	stats Stats
}

// Snapshot returns the figures of now.
func (p *Progress) Snapshot() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

func (p *Progress) update(change func(*Stats)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.stats)
}
