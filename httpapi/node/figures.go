package node

import (
	"net/http"
	"slices"
	"strconv"

	"divan/httpapi/core"
	"divan/httpapi/stats"
)

// figure is one number of _stats, with its place in the tree.
type figure struct {
	path  []string
	kind  string // "counter", "gauge" or "histogram"
	desc  string
	value float64
	hist  *stats.Histogram // of kind histogram, in thousandths of the unit of desc when milli is set
	milli bool
	// thousands: CouchDB's metric, which takes all distributions for times, has
	// thousands under a name that says seconds.
	thousands bool
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
		count("number of times a database was purged", &s.Purges.Databases, "couchdb", "database_purges"),
		count("number of times a document was read from a database", &s.DatabaseReads, "couchdb", "database_reads"),
		count("number of times a database was changed", &s.DatabaseWrites, "couchdb", "database_writes"),
		{path: []string{"couchdb", "commits"}, kind: "counter", desc: "number of commits performed", value: float64(node.Commits)},
		{path: []string{"couchdb", "dbinfo"}, kind: "histogram", desc: "distribution of latencies for calls to retrieve DB info", hist: &s.Took.DatabaseInfo, milli: true},
		count("number of documents inserted", &s.DocumentInserts, "couchdb", "document_inserts"),
		count("number of failed document purge operations", &s.Purges.Failed, "couchdb", "document_purges", "failure"),
		count("number of successful document purge operations", &s.Purges.Documents, "couchdb", "document_purges", "success"),
		{
			path: []string{"couchdb", "document_purges", "total"}, kind: "counter", desc: "number of total document purge operations",
			value: s.Purges.Failed.Value() + s.Purges.Documents.Value(),
		},
		count("number of document write operations", &s.DocumentWrites, "couchdb", "document_writes"),
		count("number of abandoned streaming requests", &s.Broken.Abandoned, "couchdb", "httpd", "abandoned_streaming_requests"),
		count("number of aborted requests", &s.Broken.Aborted, "couchdb", "httpd", "aborted_requests"),
		{path: []string{"couchdb", "httpd", "bulk_docs"}, kind: "histogram", desc: "distribution of the number of docs in _bulk_docs requests", hist: &s.Bulk.Docs, thousands: true},
		count("number of bulk requests", &s.Bulk.Requests, "couchdb", "httpd", "bulk_requests"),
		{path: []string{"couchdb", "httpd", "clients_requesting_changes"}, kind: "counter", desc: "number of clients for continuous _changes", value: float64(a.OpenFeeds())},
		count("number of purge requests", &s.Purges.Requests, "couchdb", "httpd", "purge_requests"),
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
	out = slices.Concat(out, queryFigures(s), partFigures(a), replicatorFigures(a), callFigures(a), absentFigures())
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
		figure{path: []string{"dreyfus", "httpd", "search"}, kind: "histogram", desc: "Distribution of overall search request latency as experienced by the end user", hist: &s.FullText.Search, milli: true},
		figure{path: []string{"nouveau", "search_latency"}, kind: "histogram", desc: "Distribution of overall search request latency as experienced by the end user", hist: &s.FullText.Nouveau, milli: true},
	)
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
