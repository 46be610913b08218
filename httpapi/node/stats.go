package node

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"divan/httpapi/core"
	"divan/httpapi/stats"
	"divan/storage/doc"
)

// getStats answers GET /_node/{name}/_stats[/…]: the tree of figures, or what
// is found at a path in it, null when there is nothing.
func getStats(c *core.Call) error {
	text := statsJSON(c.API, time.Now())
	for _, name := range c.Path[3:] {
		if text = doc.Lookup(text, name); text == nil {
			return c.Response.SendJSON(http.StatusOK, []byte("null"))
		}
	}
	return c.Response.SendJSON(http.StatusOK, text)
}

// statsJSON renders all figures as nested objects.
func statsJSON(a *core.API, now time.Time) []byte {
	figures := figures(a)
	slices.SortFunc(figures, func(x, y figure) int { return slices.Compare(x.path, y.path) })
	var open []string // the path whose objects are open
	out := []byte{'{'}
	for i, f := range figures {
		parents := f.path[:len(f.path)-1]
		keep := 0
		for keep < len(open) && keep < len(parents) && open[keep] == parents[keep] {
			keep++
		}
		out = append(out, strings.Repeat("}", len(open)-keep)...)
		if i > 0 {
			out = append(out, ',')
		}
		for _, name := range parents[keep:] {
			out = append(doc.AppendString(out, name), ":{"...)
		}
		open = parents
		out = append(doc.AppendString(out, f.path[len(parents)]), ':')
		out = f.appendJSON(out, now)
	}
	return append(out, strings.Repeat("}", len(open)+1)...)
}

// appendJSON appends {"value":…,"type":…,"desc":…}.
func (f *figure) appendJSON(dst []byte, now time.Time) []byte {
	dst = append(dst, `{"value":`...)
	if f.hist == nil {
		dst = appendNumber(dst, f.value)
	} else {
		dst = f.appendDistribution(dst, f.hist.Recent(now))
	}
	dst = append(dst, `,"type":"`...)
	dst = append(dst, f.kind...)
	dst = append(dst, `","desc":`...)
	dst = doc.AppendString(dst, f.desc)
	return append(dst, '}')
}

// unit returns the number that a recorded value has to be divided by.
func (f *figure) unit() float64 {
	if f.milli {
		return 1000
	}
	return 1
}

// appendDistribution appends the value of a histogram. Moments that are powers
// of the unit are scaled as such.
func (f *figure) appendDistribution(dst []byte, d stats.Distribution) []byte {
	m, u := d.Moments(), f.unit()
	for i, item := range []struct {
		name  string
		value float64
	}{
		{"min", m.Min / u},
		{"max", m.Max / u},
		{"arithmetic_mean", m.Mean / u},
		{"geometric_mean", m.Geometric / u},
		{"harmonic_mean", m.Harmonic / u},
		{"median", d.Quantile(0.5) / u},
		{"variance", m.Variance / u / u},
		{"standard_deviation", m.Deviation / u},
		{"skewness", m.Skewness},
		{"kurtosis", m.Kurtosis},
	} {
		dst = append(dst, "{,"[min(i, 1)], '"')
		dst = append(dst, item.name...)
		dst = append(dst, `":`...)
		dst = appendNumber(dst, item.value)
	}
	dst = append(dst, `,"percentile":[`...)
	for i, p := range []struct {
		name  int
		share float64
	}{{50, 0.5}, {75, 0.75}, {90, 0.9}, {95, 0.95}, {99, 0.99}, {999, 0.999}} {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(strconv.AppendInt(append(dst, '['), int64(p.name), 10), ',')
		dst = append(appendNumber(dst, d.Quantile(p.share)/u), ']')
	}
	dst = append(dst, `],"histogram":[`...)
	first := true
	for v, n := range d.Values {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendNumber(append(dst, '['), v/u), ',')
		dst = append(strconv.AppendUint(dst, n, 10), ']')
	}
	dst = append(dst, `],"n":`...)
	dst = strconv.AppendUint(dst, d.N, 10)
	return append(dst, '}')
}

// appendNumber appends a number as JSON; what JSON cannot hold is 0.
func appendNumber(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	return strconv.AppendFloat(dst, v, 'g', 10, 64)
}
