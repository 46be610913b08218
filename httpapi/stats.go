package httpapi

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"divan/shard"
)

// statistics are the numbers that requests leave behind, for _stats and
// _prometheus. Handlers add to the counters that only they can know.
type statistics struct {
	requests counter
	panics   counter
	methods  [len(countedMethods)]counter
	statuses [len(countedStatuses)]counter
	time     histogram // milliseconds·1000: microseconds of a request

	databaseReads     counter // documents read
	databaseWrites    counter // requests that changed a database
	databasePurges    counter
	documentInserts   counter // documents made
	documentWrites    counter // edits
	localWrites       counter
	purgedDocuments   counter
	failedPurges      counter
	bulkRequests      counter
	purgeRequests     counter
	bulkDocs          histogram // documents in a _bulk_docs request
	allDocsPartitions counter   // _partition/{p}/_all_docs
}

// counter is a number that only grows; the zero value is ready.
type counter struct{ n atomic.Uint64 }

// Inc adds one.
func (c *counter) Inc() { c.n.Add(1) }

// Add adds several.
func (c *counter) Add(n int) { c.n.Add(uint64(max(n, 0))) }

func (c *counter) value() float64 { return float64(c.n.Load()) }

func newStatistics() *statistics { return &statistics{} }

// countedMethods and countedStatuses are those that CouchDB counts.
var (
	countedMethods = [...]string{
		"COPY", http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut,
	}
	countedStatuses = [...]int{
		200, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 404, 405, 406, 409, 412, 413, 414, 415, 416, 417, 500, 501, 503, 507,
	}
)

// request counts a finished request.
func (s *statistics) request(c *call, took time.Duration) {
	s.requests.Inc()
	s.time.record(uint64(max(took.Microseconds(), 0)), c.start)
	for i, m := range countedMethods {
		if m == c.r.Method {
			s.methods[i].Inc()
		}
	}
	for i, status := range countedStatuses {
		if status == c.w.status {
			s.statuses[i].Inc()
		}
	}
	switch {
	case c.w.status >= 300 || c.route == nil:
	case c.docID != "" && c.method == http.MethodGet:
		s.databaseReads.Inc()
	case c.route.name == "partition docs":
		s.allDocsPartitions.Inc()
	}
}

// openFeeds returns the number of _changes feeds under way.
func (a *API) openFeeds() float64 {
	a.feeds.mu.Lock()
	defer a.feeds.mu.Unlock()
	return float64(len(a.feeds.open))
}

// edits counts what became of edits that were sent together.
func (s *statistics) edits(sent []shard.Edit, results []shard.EditResult) {
	written, local, inserted := 0, 0, 0
	for i := range results {
		switch {
		case results[i].Err != nil:
		case isLocal(sent[i].ID):
			local++
		default:
			written++
			if results[i].Rev.Pos == 1 {
				inserted++
			}
		}
	}
	s.documentWrites.Add(written)
	s.documentInserts.Add(inserted)
	s.localWrites.Add(local)
	if written+local > 0 {
		s.databaseWrites.Inc()
	}
}

// bulk counts a request with several documents.
func (s *statistics) bulk(documents int, now time.Time) {
	s.bulkRequests.Inc()
	s.bulkDocs.record(uint64(max(documents, 0)), now)
}

// figure is one number of _stats, with its place in the tree.
type figure struct {
	path  []string
	kind  string // "counter", "gauge" or "histogram"
	desc  string
	value float64
	hist  *histogram // of kind histogram, in thousandths of the unit of desc when milli is set
	milli bool
}

// figures lists every number of _stats, sorted by path: CouchDB's names and
// descriptions for what this server counts.
func (a *API) figures() []figure {
	s := a.stats
	node := a.nodeFigures()
	count := func(desc string, c *counter, path ...string) figure {
		return figure{path: path, kind: "counter", desc: desc, value: c.value()}
	}
	out := []figure{
		{path: []string{"couch_replicator", "jobs", "total"}, kind: "gauge", desc: "total number of replications"},
		{path: []string{"couchdb", "auth_cache_hits"}, kind: "counter", desc: "number of authentication cache hits", value: float64(node.AuthCacheHits)},
		{path: []string{"couchdb", "auth_cache_misses"}, kind: "counter", desc: "number of authentication cache misses", value: float64(node.AuthCacheMisses)},
		count("number of times a database was purged", &s.databasePurges, "couchdb", "database_purges"),
		count("number of times a document was read from a database", &s.databaseReads, "couchdb", "database_reads"),
		count("number of times a database was changed", &s.databaseWrites, "couchdb", "database_writes"),
		count("number of documents inserted", &s.documentInserts, "couchdb", "document_inserts"),
		count("number of failed document purge operations", &s.failedPurges, "couchdb", "document_purges", "failure"),
		count("number of successful document purge operations", &s.purgedDocuments, "couchdb", "document_purges", "success"),
		count("number of document write operations", &s.documentWrites, "couchdb", "document_writes"),
		{path: []string{"couchdb", "httpd", "bulk_docs"}, kind: "histogram", desc: "distribution of the number of docs in _bulk_docs requests", hist: &s.bulkDocs},
		count("number of bulk requests", &s.bulkRequests, "couchdb", "httpd", "bulk_requests"),
		{path: []string{"couchdb", "httpd", "clients_requesting_changes"}, kind: "counter", desc: "number of clients for continuous _changes", value: a.openFeeds()},
		count("number of partition HTTP _all_docs requests", &s.allDocsPartitions, "couchdb", "httpd", "partition_all_docs_requests"),
		count("number of purge requests", &s.purgeRequests, "couchdb", "httpd", "purge_requests"),
		count("number of HTTP requests", &s.requests, "couchdb", "httpd", "requests"),
		{path: []string{"couchdb", "httpd", "view_reads"}, kind: "counter", desc: "number of view reads"},
	}
	for i, m := range countedMethods {
		out = append(out, count("number of HTTP "+m+" requests", &s.methods[i], "couchdb", "httpd_request_methods", m))
	}
	for i, status := range countedStatuses {
		text := strconv.Itoa(status)
		out = append(out, count("number of HTTP "+text+" "+statusText(status)+" responses", &s.statuses[i], "couchdb", "httpd_status_codes", text))
	}
	return append(out,
		count("number of _local document write operations", &s.localWrites, "couchdb", "local_document_writes"),
		figure{path: []string{"couchdb", "open_databases"}, kind: "counter", desc: "number of open databases", value: float64(node.OpenDatabases)},
		figure{path: []string{"couchdb", "open_os_files"}, kind: "counter", desc: "number of file descriptors CouchDB has open", value: openFiles()},
		figure{path: []string{"couchdb", "request_time"}, kind: "histogram", desc: "length of a request inside CouchDB without MochiWeb", hist: &s.time, milli: true},
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
