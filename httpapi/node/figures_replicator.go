package node

import (
	"cmp"

	"divan/httpapi/core"
	"divan/replicator"
	"divan/replicator/protocol"
	"divan/replicator/remote"
)

// replicatorFigures are the numbers of replications, with CouchDB's names.
func replicatorFigures(a *core.API) []figure {
	var f replicator.Figures
	if a.Deps.Replicator != nil {
		f = a.Deps.Replicator.Figures()
	}
	counter := func(desc string, n uint64, path ...string) figure {
		return figure{path: append([]string{"couch_replicator"}, path...), kind: "counter", desc: desc, value: float64(n)}
	}
	gauge := func(desc string, n int, name string) figure {
		return figure{path: []string{"couch_replicator", "jobs", name}, kind: "gauge", desc: desc, value: float64(n)}
	}
	out := []figure{
		counter("number of '_changes' rows of replicator dbs that were processed", f.Changes, "docs", "db_changes"),
		counter("number of replicator dbs found", f.DatabasesFound, "docs", "dbs_found"),
		counter("number of 'completed' state document updates", f.Completed, "docs", "completed_state_updates"),
		counter("number of 'failed' state document updates", f.Failed, "docs", "failed_state_updates"),
		counter("number of times a replicator db scan was started", f.Scans, "db_scans"),
		counter("number of times a job was added to the replicator scheduler", f.Jobs.Adds, "jobs", "adds"),
		counter("number of times the same job was added more than once", f.Jobs.DuplicateAdds, "jobs", "duplicate_adds"),
		counter("number of times a job was removed from the replicator scheduler", f.Jobs.Removes, "jobs", "removes"),
		counter("number of times a replicator job was started", f.Jobs.Starts, "jobs", "starts"),
		counter("number of times a replicator job was stopped", f.Jobs.Stops, "jobs", "stops"),
		counter("number of times a replicator job crashed", f.Jobs.Crashes, "jobs", "crashes"),
		gauge("total number of replicator scheduler jobs", f.Jobs.Total, "total"),
		gauge("number of running replicator scheduler jobs", f.Jobs.Running, "running"),
		gauge("number of pending replicator scheduler jobs", f.Jobs.Pending, "pending"),
		gauge("number of crashed replicator scheduler jobs", f.Jobs.Crashed, "crashed"),
	}
	n, r := cmp.Or(f.Network, &remote.Figures{}), cmp.Or(f.Runs, &protocol.Figures{})
	return append(out,
		counter("number of failed replicator changes read failures", r.FailedChanges.Load(), "changes_read_failures"),
		counter("number of failed checkpoint saves", r.FailedCheckpoints.Load(), "checkpoints", "failure"),
		counter("number of checkpoints successfully saves", r.Checkpoints.Load(), "checkpoints", "success"),
		counter("number of times connections are shared", n.ConnectionsUsed.Load(), "connection", "acquires"),
		counter("number of connections created", n.ConnectionsMade.Load(), "connection", "creates"),
		counter("number of replications that have failed to start", r.FailedStarts.Load(), "failed_starts"),
		counter("number of HTTP requests made by the replicator", n.Requests.Load(), "requests"),
		counter("number of failed HTTP responses received by the replicator", n.FailedResponses.Load(), "responses", "failure"),
		counter("number of successful HTTP responses received by the replicator", n.Responses.Load(), "responses", "success"),
		counter("number of failed streaming HTTP responses received by the replicator", n.FailedStreamResponses.Load(), "stream_responses", "failure"),
		counter("number of successful streaming HTTP responses received by the replicator", n.StreamResponses.Load(), "stream_responses", "success"),
	)
}
