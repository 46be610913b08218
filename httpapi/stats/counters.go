package stats

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Counters are the numbers that requests leave behind, for _stats and
// _prometheus. Handlers add to the counters that only they can know.
type Counters struct {
	Requests Counter
	Panics   Counter
	Broken   Broken
	Methods  [len(CountedMethods)]Counter
	Statuses [len(CountedStatuses)]Counter
	Time     Histogram // milliseconds·1000: microseconds of a request

	DatabaseReads     Counter // documents read
	DatabaseWrites    Counter // requests that changed a database
	DocumentInserts   Counter // documents made
	DocumentWrites    Counter // edits
	LocalWrites       Counter
	Bulk              Bulk
	Purges            Purges
	ViewReads         Counter // requests to views
	Partitions        Queries // below _partition/{p}
	Timeouts          Queries // that took too long
	PartitionTimeouts Queries
	Mango             Mango
	FullText          FullText
	Took              Took
}

// Took is how long some work takes, in microseconds.
type Took struct {
	DatabaseInfo Histogram // a GET /{db}
	Validations  Histogram // functions that validate an edit
}

// Bulk counts requests with several documents.
type Bulk struct {
	Requests Counter
	Docs     Histogram // in one of them
}

// FullText is the time of full-text queries, in microseconds.
type FullText struct{ Search, Nouveau Histogram }

// Broken are the answers that did not arrive.
type Broken struct {
	Aborted   Counter // broken off, or the client went before the answer
	Abandoned Counter // streamed ones whose client has gone
}

// Purges counts requests to purge.
type Purges struct{ Requests, Databases, Documents, Failed Counter }

// Queries are numbers of queries by their kinds.
type Queries struct{ View, Find, Explain, AllDocs Counter }

// CountTimeout counts a query that took too long, by the name of its route.
func (s *Counters) CountTimeout(route string) {
	switch route {
	case "view", "view queries":
		s.Timeouts.View.Inc()
	case "find":
		s.Timeouts.Find.Inc()
	case "explain":
		s.Timeouts.Explain.Inc()
	case "all docs":
		s.Timeouts.AllDocs.Inc()
	case "partition view", "partition view queries":
		s.PartitionTimeouts.View.Inc()
	case "partition find":
		s.PartitionTimeouts.Find.Inc()
	case "partition explain":
		s.PartitionTimeouts.Explain.Inc()
	case "partition docs":
		s.PartitionTimeouts.AllDocs.Inc()
	}
}

// Mango counts queries by selector.
type Mango struct {
	Unindexed    Counter // queries that no index serves
	InvalidIndex Counter // queries that another index serves than the one that was named
	Wasteful     Counter // queries that read much for few results
	Keys         Counter // that were examined
	Docs         Counter // likewise
	QuorumDocs   Counter // likewise, of several copies
	Results      Counter // documents that were returned
	Time         Histogram
}

// Took records how long a query took.
func (m *Mango) Took(took time.Duration, now time.Time) {
	m.Time.record(uint64(max(took.Microseconds(), 0)), now)
}

// Counter is a number that only grows; the zero value is ready.
type Counter struct{ n atomic.Uint64 }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds several.
func (c *Counter) Add(n int) { c.n.Add(uint64(max(n, 0))) }

// Value returns the count.
func (c *Counter) Value() float64 { return float64(c.n.Load()) }

// CountedMethods and CountedStatuses are the methods and statuses that CouchDB counts.
var (
	CountedMethods = [...]string{
		"COPY", http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut,
	}
	CountedStatuses = [...]int{
		200, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 404, 405, 406, 409, 412, 413, 414, 415, 416, 417, 500, 501, 503, 507,
	}
)

// CountRequest counts a finished request, by the method that the client sent.
func (s *Counters) CountRequest(method string, status int, began time.Time, took time.Duration) {
	s.Requests.Inc()
	s.Time.record(uint64(max(took.Microseconds(), 0)), began)
	for i, m := range CountedMethods {
		if m == method {
			s.Methods[i].Inc()
		}
	}
	for i, counted := range CountedStatuses {
		if counted == status {
			s.Statuses[i].Inc()
		}
	}
}

// CountInfo counts a request for the figures of a database.
func (s *Counters) CountInfo(took time.Duration, now time.Time) {
	s.Took.DatabaseInfo.record(uint64(max(took.Microseconds(), 0)), now)
}

// ValidationTook records how long a validation function took.
func (s *Counters) ValidationTook(took time.Duration) {
	s.Took.Validations.record(uint64(max(took.Microseconds(), 0)), time.Now())
}

// CountSearch counts a full-text query.
func (s *Counters) CountSearch(into *Histogram, took time.Duration, now time.Time) {
	into.record(uint64(max(took.Microseconds(), 0)), now)
}

// CountBulk counts a request with several documents.
func (s *Counters) CountBulk(documents int, now time.Time) {
	s.Bulk.Requests.Inc()
	s.Bulk.Docs.record(uint64(max(documents, 0)), now)
}
