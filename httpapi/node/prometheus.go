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

// promType is CouchDB's media type; scrapers take it for the text format 0.0.4.
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
	for _, f := range slices.Concat(runtimeFigures(n.api, time.Now()), clusterFigures(n.api), loadFigures(n.api), scriptFigures(n.api.Deps.Scripts.Stats())) {
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
	all := figures(p.a)
	values := make(map[string]float64, len(all))
	for _, f := range all {
		values[strings.Join(f.path, "_")] = f.value
	}
	for _, f := range all {
		out <- promMetric(f, values, now)
	}
}
