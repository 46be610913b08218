package node

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/zap"

	"divan/httpapi/core"
)

// promType is what CouchDB says; scrapers take it for the text format 0.0.4.
const promType = "text/plain; version=2.0"

// New returns the family of the endpoints of an API's node.
func New(a *core.API) (*Family, error) {
	n := &Family{api: a, registry: prometheus.NewRegistry()}
	for _, c := range []prometheus.Collector{
		promCollector{a}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := n.registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return n, nil
}

// getPrometheus answers GET /_node/{name}/_prometheus.
func (n *Family) getPrometheus(c *core.Call) error {
	out := c.Stream(promType)
	if err := n.writeMetrics(out); err != nil {
		return err
	}
	return out.Close()
}

// MetricsHandler serves the metrics without authentication, for the port of
// [prometheus] additional_port.
func (n *Family) MetricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var text bytes.Buffer
		if err := n.writeMetrics(&text); err != nil {
			n.api.Deps.Logger.Error("metrics", zap.Error(err))
			http.Error(w, "the metrics could not be gathered", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", promType)
		if _, err := w.Write(text.Bytes()); err != nil {
			n.api.Deps.Logger.Debug("metrics not delivered", zap.Error(err))
		}
	})
}

// writeMetrics writes everything: the figures of the runtime under CouchDB's
// names come last, in CouchDB's order, which is not that of a registry.
func (n *Family) writeMetrics(w io.Writer) error {
	families, err := n.registry.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return fmt.Errorf("write metric %s: %w", f.GetName(), err)
		}
	}
	var text []byte
	last := ""
	for _, f := range slices.Concat(runtimeFigures(n.api, time.Now()), clusterFigures(n.api), loadFigures(n.api), turnFigures(n.api.Deps.Scripts.Stats())) {
		if f.name != last {
			text = fmt.Appendf(text, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
			last = f.name
		}
		text = fmt.Appendf(text, "%s%s %s\n", f.name, f.label, appendNumber(nil, f.value))
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write metrics of the runtime: %w", err)
	}
	return nil
}

// promCollector offers the figures of _stats to a registry.
type promCollector struct{ a *core.API }

// Describe implements prometheus.Collector: the metrics are not known
// beforehand, which makes the collector an unchecked one.
func (promCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (p promCollector) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	for _, f := range figures(p.a) {
		out <- promMetric(f, now)
	}
}

// promMetric turns a figure into a metric with the name that CouchDB gives it.
func promMetric(f figure, now time.Time) prometheus.Metric {
	name, help, labels := promName(f)
	desc := prometheus.NewDesc(name, help, nil, labels)
	switch {
	case f.hist != nil:
		d, unit := f.hist.Recent(now), 1.0
		if f.milli {
			unit = 1e6 // recorded in microseconds, told in seconds
		}
		quantiles := map[float64]float64{}
		for _, q := range []float64{0.5, 0.75, 0.9, 0.95, 0.99, 0.999} {
			quantiles[q] = d.Quantile(q) / unit
		}
		count, sum := f.hist.Total()
		return prometheus.MustNewConstSummary(desc, count, float64(sum)/unit, quantiles)
	case isGauge(f, name):
		return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, f.value)
	default:
		return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, f.value)
	}
}

// promName returns name and help of a figure: its path joined, "_total" after a
// counter, methods and status codes as labels.
func promName(f figure) (name, help string, labels prometheus.Labels) {
	if len(f.path) == 3 && f.path[0] == "couchdb" {
		switch f.path[1] {
		case "httpd_request_methods":
			return "couchdb_httpd_request_methods", "number of HTTP requests by method", prometheus.Labels{"method": f.path[2]}
		case "httpd_status_codes":
			return "couchdb_httpd_status_codes", "number of HTTP responses by status code", prometheus.Labels{"code": f.path[2]}
		}
	}
	name = strings.Join(f.path, "_")
	if !strings.HasPrefix(name, "couchdb_") {
		name = "couchdb_" + name
	}
	switch {
	case f.hist != nil && f.milli:
		name += "_seconds"
	case f.hist == nil && !isGauge(f, name):
		name += "_total"
	}
	return name, f.desc, nil
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
