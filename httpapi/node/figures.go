package node

import (
	"net/http"
	"strconv"

	"divan/httpapi/core"
	"divan/httpapi/stats"
	"divan/replicator"
)

// figure is one number of _stats, with its place in the tree.
type figure struct {
	path  []string
	kind  string // "counter", "gauge" or "histogram"
	desc  string
	value float64
	hist  *stats.Histogram // of kind histogram, in thousandths of the unit of desc when milli is set
	milli bool
}

// figures lists every number of _stats, sorted by path: CouchDB's names and
// descriptions for what this server counts.
func figures(a *core.API) []figure {
	s := a.Stats
	node, logins := nodeFigures(a), a.Deps.Auth.Figures()
	count := func(desc string, c *stats.Counter, path ...string) figure {
		return figure{path: path, kind: "counter", desc: desc, value: c.Value()}
	}
	out := []figure{
		{path: []string{"couchdb", "auth_cache_hits"}, kind: "counter", desc: "number of authentication cache hits", value: float64(logins.Hits)},
		{path: []string{"couchdb", "auth_cache_misses"}, kind: "counter", desc: "number of authentication cache misses", value: float64(logins.Misses)},
		count("number of times a database was purged", &s.DatabasePurges, "couchdb", "database_purges"),
		count("number of times a document was read from a database", &s.DatabaseReads, "couchdb", "database_reads"),
		count("number of times a database was changed", &s.DatabaseWrites, "couchdb", "database_writes"),
		count("number of documents inserted", &s.DocumentInserts, "couchdb", "document_inserts"),
		count("number of failed document purge operations", &s.FailedPurges, "couchdb", "document_purges", "failure"),
		count("number of successful document purge operations", &s.PurgedDocuments, "couchdb", "document_purges", "success"),
		count("number of document write operations", &s.DocumentWrites, "couchdb", "document_writes"),
		{path: []string{"couchdb", "httpd", "bulk_docs"}, kind: "histogram", desc: "distribution of the number of docs in _bulk_docs requests", hist: &s.BulkDocs},
		count("number of bulk requests", &s.BulkRequests, "couchdb", "httpd", "bulk_requests"),
		{path: []string{"couchdb", "httpd", "clients_requesting_changes"}, kind: "counter", desc: "number of clients for continuous _changes", value: float64(a.OpenFeeds())},
		count("number of partition HTTP _all_docs requests", &s.AllDocsPartitions, "couchdb", "httpd", "partition_all_docs_requests"),
		count("number of partition HTTP view requests", &s.ViewPartitions, "couchdb", "httpd", "partition_view_requests"),
		count("number of purge requests", &s.PurgeRequests, "couchdb", "httpd", "purge_requests"),
		count("number of HTTP requests", &s.Requests, "couchdb", "httpd", "requests"),
		count("number of view reads", &s.ViewReads, "couchdb", "httpd", "view_reads"),
	}
	for i, m := range stats.CountedMethods {
		out = append(out, count("number of HTTP "+m+" requests", &s.Methods[i], "couchdb", "httpd_request_methods", m))
	}
	for i, status := range stats.CountedStatuses {
		text := strconv.Itoa(status)
		out = append(out, count("number of HTTP "+text+" "+statusText(status)+" responses", &s.Statuses[i], "couchdb", "httpd_status_codes", text))
	}
	out = append(out, replicatorFigures(a)...)
	mango := &s.Mango
	return append(out,
		count("number of _local document write operations", &s.LocalWrites, "couchdb", "local_document_writes"),
		figure{path: []string{"couchdb", "open_databases"}, kind: "counter", desc: "number of open databases", value: float64(node.OpenDatabases)},
		figure{path: []string{"couchdb", "open_os_files"}, kind: "counter", desc: "number of file descriptors CouchDB has open", value: openFiles()},
		figure{path: []string{"couchdb", "request_time"}, kind: "histogram", desc: "length of a request inside CouchDB without MochiWeb", hist: &s.Time, milli: true},
		count("number of documents examined by mango queries coordinated by this node", &mango.Docs, "mango", "docs_examined"),
		count("number of keys examined by mango queries coordinated by this node", &mango.Keys, "mango", "keys_examined"),
		count("number of mango queries that generated an invalid index warning", &mango.InvalidIndex, "mango", "query_invalid_index"),
		figure{path: []string{"mango", "query_time"}, kind: "histogram", desc: "length of time processing a mango query", hist: &mango.Time, milli: true},
		count("number of documents examined by mango queries, using cluster quorum", &mango.QuorumDocs, "mango", "quorum_docs_examined"),
		count("number of rows returned by mango queries", &mango.Results, "mango", "results_returned"),
		count("number of mango queries that generated an index scan warning", &mango.Wasteful, "mango", "too_many_docs_scanned"),
		count("number of mango queries that could not use an index", &mango.Unindexed, "mango", "unindexed_queries"),
	)
}

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
	return []figure{
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
}

// statusText is the reason phrase as CouchDB's descriptions spell it.
func statusText(status int) string {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return "Request Entity Too Long"
	case http.StatusRequestURITooLong:
		return "Request URI Too Long"
	case http.StatusServiceUnavailable:
		return "Service unavailable"
	}
	return http.StatusText(status)
}
