package httpapi

import (
	"net/http"
	"sync/atomic"
	"time"
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

// countedMethods and countedStatuses are those that CouchDB counts.
var (
	countedMethods = [...]string{
		"COPY", http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut,
	}
	countedStatuses = [...]int{
		200, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 404, 405, 406, 409, 412, 413, 414, 415, 416, 417, 500, 501, 503, 507,
	}
)

// request counts a finished request, by the method that the client sent.
func (s *statistics) request(method string, status int, began time.Time, took time.Duration) {
	s.requests.Inc()
	s.time.record(uint64(max(took.Microseconds(), 0)), began)
	for i, m := range countedMethods {
		if m == method {
			s.methods[i].Inc()
		}
	}
	for i, counted := range countedStatuses {
		if counted == status {
			s.statuses[i].Inc()
		}
	}
}

// bulk counts a request with several documents.
func (s *statistics) bulk(documents int, now time.Time) {
	s.bulkRequests.Inc()
	s.bulkDocs.record(uint64(max(documents, 0)), now)
}
