package node

import (
	"slices"

	"divan/httpapi/core"
	"divan/httpapi/stats"
)

// queryFigures are the numbers of queries: of partitions, and of those that took too
// long.
func queryFigures(s *stats.Counters) []figure {
	var out []figure
	add := func(desc string, c *stats.Counter, name string) {
		out = append(out, figure{path: []string{"couchdb", "httpd", name}, kind: "counter", desc: desc, value: c.Value()})
	}
	for _, q := range []struct {
		name, told                              string
		partitions, timeouts, partitionTimeouts *stats.Counter
	}{
		{"all_docs", "_all_docs", &s.Partitions.AllDocs, &s.Timeouts.AllDocs, &s.PartitionTimeouts.AllDocs},
		{"explain", "_explain", &s.Partitions.Explain, &s.Timeouts.Explain, &s.PartitionTimeouts.Explain},
		{"find", "_find", &s.Partitions.Find, &s.Timeouts.Find, &s.PartitionTimeouts.Find},
		{"view", "view", &s.Partitions.View, &s.Timeouts.View, &s.PartitionTimeouts.View},
	} {
		add("number of HTTP "+q.told+" timeouts", q.timeouts, q.name+"_timeouts")
		add("number of partition HTTP "+q.told+" requests", q.partitions, "partition_"+q.name+"_requests")
		add("number of partition HTTP "+q.told+" timeouts", q.partitionTimeouts, "partition_"+q.name+"_timeouts")
	}
	return out
}

// partFigures are the numbers of other parts of the node.
func partFigures(a *core.API) []figure {
	counter := func(desc string, n uint64, path ...string) figure {
		return figure{path: path, kind: "counter", desc: desc, value: float64(n)}
	}
	f, scripts := a.Deps.Coordinator.Figures(), a.Deps.Scripts.Stats()
	hits, misses := a.Deps.Designs.Reads()
	var uses uint64
	for _, q := range scripts.Queues {
		uses += q.Given
	}
	out := []figure{
		counter("number of acquired external processes", uses, "couchdb", "query_server", "acquired_processes"),
		counter("number of error OS process exits", scripts.Broken, "couchdb", "query_server", "process_error_exits"),
		counter("number of OS process errors", scripts.Timeouts, "couchdb", "query_server", "process_errors"),
		counter("number of OS process starts", scripts.Started, "couchdb", "query_server", "process_starts"),
		counter("number of design doc cache hits", hits, "ddoc_cache", "hit"),
		counter("number of design doc cache misses", misses, "ddoc_cache", "miss"),
		counter("number of document update errors", f.UpdateErrors, "fabric", "doc_update", "errors"),
		counter("number of write quorum errors", f.QuorumErrors, "fabric", "doc_update", "write_quorum_errors"),
		counter("number of failed read repair operations", f.FailedReadRepairs, "fabric", "read_repairs", "failure"),
		counter("number of successful read repair operations", f.ReadRepairs-f.FailedReadRepairs, "fabric", "read_repairs", "success"),
	}
	lines := nodeFigures(a).LogLines
	for level, n := range lines {
		out = append(out, counter("number of logged "+level+" messages", n, "couch_log", "level", level))
	}
	slices.SortFunc(out, func(x, y figure) int { return slices.Compare(x.path, y.path) })
	return out
}
