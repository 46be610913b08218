package node

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// promMetric turns a figure into a metric with the name that CouchDB gives it. values
// are those of all figures, by path.
func promMetric(f figure, values map[string]float64, now time.Time) prometheus.Metric {
	m := promName(f)
	desc := prometheus.NewDesc(m.name, m.help, nil, m.labels)
	if f.hist == nil {
		return prometheus.MustNewConstMetric(desc, m.kind, f.value+values[m.with])
	}
	d, unit := f.hist.Recent(now), 1.0
	switch {
	case f.milli:
		unit = 1e6 // recorded in microseconds, told in seconds
	case f.thousands:
		unit = 1e3
	}
	quantiles := map[float64]float64{}
	for _, q := range []float64{0.5, 0.75, 0.9, 0.95, 0.99, 0.999} {
		quantiles[q] = d.Quantile(q) / unit
	}
	count, sum := f.hist.Total()
	return prometheus.MustNewConstSummary(desc, count, float64(sum)/unit, quantiles)
}

// promNaming is the name of a figure as a metric.
type promNaming struct {
	name, help string
	labels     prometheus.Labels
	kind       prometheus.ValueType
	with       string // the path of a figure that is added, joined; empty: none
}

// promFamily returns what figures below a path are called whose last part is a label.
// The first two are counters whose names do not say so, for which promtool wants no type.
func promFamily(path, last string) (m promNaming, ok bool) {
	switch path {
	case "couchdb_httpd_request_methods":
		return promNaming{path, "number of HTTP requests by method", prometheus.Labels{"method": last}, prometheus.UntypedValue, ""}, true
	case "couchdb_httpd_status_codes":
		return promNaming{path, "number of HTTP responses by status code", prometheus.Labels{"code": last}, prometheus.UntypedValue, ""}, true
	case "couch_log_level":
		const name = "couchdb_couch_log_requests_total"
		return promNaming{name, "number of logged messages", prometheus.Labels{"level": last}, prometheus.CounterValue, ""}, true
	}
	if path == "rexi_streams_timeout" && last == "init_stream" { // CouchDB labels the first one only
		return promNaming{"couchdb_rexi_streams_timeout_total", "number of rexi stream timeouts", prometheus.Labels{"stage": last}, prometheus.CounterValue, ""}, true
	}
	return promNaming{}, false
}

// promRenamed returns what a figure is called whose path CouchDB does not just join.
// In the place of a number of successes it has the sum with that of failures.
func promRenamed(path string) (m promNaming, ok bool) {
	m.kind = prometheus.CounterValue
	switch path {
	case "couchdb_auth_cache_hits":
		m.name, m.help, m.with = "couchdb_auth_cache_requests_total", "number of authentication cache requests", "couchdb_auth_cache_misses"
	case "couch_replicator_checkpoints_success":
		m.name, m.help, m.with = "couchdb_couch_replicator_checkpoints_total", "number of checkpoint saves", "couch_replicator_checkpoints_failure"
	case "couch_replicator_responses_success":
		m.name, m.help = "couchdb_couch_replicator_responses_total", "number of HTTP responses received by the replicator"
		m.with = "couch_replicator_responses_failure"
	case "couch_replicator_stream_responses_success":
		m.name, m.help = "couchdb_couch_replicator_stream_responses_total", "number of streaming HTTP responses received by the replicator"
		m.with = "couch_replicator_stream_responses_failure"
	case "ddoc_cache_hit":
		m.name, m.help, m.with = "couchdb_ddoc_cache_requests_total", "number of design doc cache requests", "ddoc_cache_miss"
	case "ddoc_cache_miss":
		m.name, m.help = "couchdb_ddoc_cache_requests_failures_total", "number of design doc cache misses"
	case "ddoc_cache_recovery":
		m.name, m.help = "couchdb_ddoc_cache_requests_recovery_total", "number of design doc cache recoveries"
	case "fabric_read_repairs_success":
		m.name, m.help, m.with = "couchdb_fabric_read_repairs_total", "number of fabric read repairs", "fabric_read_repairs_failure"
	case "fabric_read_repairs_failure":
		m.name, m.help = "couchdb_fabric_read_repairs_failures_total", "number of failed read repair operations"
	}
	return m, m.name != ""
}

// promName returns what a figure is called: its path joined, "_total" after a counter,
// and what CouchDB does otherwise.
func promName(f figure) promNaming {
	last := len(f.path) - 1
	path := strings.Join(f.path, "_")
	if m, ok := promFamily(strings.Join(f.path[:last], "_"), f.path[last]); ok {
		return m
	}
	if m, ok := promRenamed(path); ok {
		return m
	}
	m := promNaming{help: f.desc, kind: prometheus.CounterValue}
	m.name = "couchdb_" + strings.TrimPrefix(path, "couchdb_")
	switch {
	case f.hist != nil && f.thousands:
		m.name += "_seconds"
		m.help += ", in thousands"
	case f.hist != nil:
		m.name += "_seconds"
	case path == "couch_replicator_jobs_total": // it goes up and down, which promtool refuses of this name
		m.kind = prometheus.UntypedValue
	case isGauge(f, m.name):
		m.kind = prometheus.GaugeValue
	case !strings.HasSuffix(m.name, "_total"):
		m.name += "_total"
	}
	return m
}

// isGauge reports whether a figure goes up and down: CouchDB's _stats calls
// some of those counters.
func isGauge(f figure, name string) bool {
	switch name {
	case "couchdb_open_databases", "couchdb_open_os_files", "couchdb_httpd_clients_requesting_changes":
		return true
	}
	return f.kind == "gauge"
}
