package stats

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// window is how long values count in a distribution: between one and two
// windows, as the older of two slots is thrown away whole.
const window = 10 * time.Second

// buckets is the number of log-linear buckets: sixteen to each power of two,
// so that a value is known to 1/16; the last one takes all larger values.
const buckets = 16 * 36

// Histogram is a distribution of recent values and the count and sum of all
// values ever. Recording one costs a few atomic additions and no lock; a value
// recorded while its window ends may be lost from the distribution, never
// from count and sum.
type Histogram struct {
	count atomic.Uint64
	sum   atomic.Uint64
	slots [2]histogramSlot
}

type histogramSlot struct {
	epoch  atomic.Int64 // number of the window since 1970
	counts [buckets]atomic.Uint32
}

// record adds a value at a moment.
func (h *Histogram) record(v uint64, now time.Time) {
	h.count.Add(1)
	h.sum.Add(v)
	h.slot(now).counts[bucketOf(v)].Add(1)
}

// slot returns the slot of a moment, emptied when it still held an older one.
func (h *Histogram) slot(now time.Time) *histogramSlot {
	epoch := now.UnixNano() / int64(window)
	s := &h.slots[epoch&1]
	if old := s.epoch.Load(); old != epoch && s.epoch.CompareAndSwap(old, epoch) {
		for i := range s.counts {
			s.counts[i].Store(0)
		}
	}
	return s
}

// bucketOf returns the bucket of a value.
func bucketOf(v uint64) int {
	if v < 32 {
		return int(v)
	}
	shift := bits.Len64(v) - 5
	return min(16*shift+int(v>>shift), buckets-1)
}

// bucketValue returns the middle of a bucket.
func bucketValue(i int) float64 {
	if i < 32 {
		return float64(i)
	}
	shift := i/16 - 1
	low := uint64(i-16*shift) << shift
	return float64(low) + float64(uint64(1)<<shift-1)/2
}

// Distribution is the content of a histogram at a moment.
type Distribution struct {
	counts [buckets]uint64
	N      uint64
}

// Recent returns the values of the last one to two windows.
func (h *Histogram) Recent(now time.Time) Distribution {
	var d Distribution
	epoch := now.UnixNano() / int64(window)
	for i := range h.slots {
		if e := h.slots[i].epoch.Load(); e != epoch && e != epoch-1 {
			continue
		}
		for k := range h.slots[i].counts {
			n := uint64(h.slots[i].counts[k].Load())
			d.counts[k] += n
			d.N += n
		}
	}
	return d
}

// Quantile returns the value below which the share q (0 to 1) of all values
// lies, 0 when there are none.
func (d *Distribution) Quantile(q float64) float64 {
	if d.N == 0 {
		return 0
	}
	rank := uint64(math.Ceil(q * float64(d.N)))
	seen := uint64(0)
	for i, n := range d.counts {
		seen += n
		if n > 0 && seen >= rank {
			return bucketValue(i)
		}
	}
	return 0
}

// Values yields the values that are there, each as the middle of its bucket, and
// how many there are of it.
func (d *Distribution) Values(yield func(v float64, n uint64) bool) {
	for i, n := range d.counts {
		if n > 0 && !yield(bucketValue(i), n) {
			return
		}
	}
}

// Total returns the count and the sum of all values ever.
func (h *Histogram) Total() (count, sum uint64) { return h.count.Load(), h.sum.Load() }

// Moments are the figures of CouchDB's histograms (folsom's statistics).
type Moments struct {
	Min, Max, Mean, Geometric, Harmonic     float64
	Variance, Deviation, Skewness, Kurtosis float64
}

// Moments computes them from the buckets; all are 0 without values.
func (d *Distribution) Moments() Moments {
	var m Moments
	if d.N == 0 {
		return m
	}
	n, sum, logs, inverse, first := float64(d.N), 0.0, 0.0, 0.0, true
	for i, count := range d.counts {
		if count == 0 {
			continue
		}
		v, k := bucketValue(i), float64(count)
		if first {
			m.Min, first = v, false
		}
		m.Max = v
		sum += k * v
		if v > 0 {
			logs += k * math.Log(v)
			inverse += k / v
		}
	}
	m.Mean = sum / n
	m.Geometric = math.Exp(logs / n)
	if inverse > 0 {
		m.Harmonic = n / inverse
	}
	var second, third, fourth float64
	for i, count := range d.counts {
		if count > 0 {
			delta, k := bucketValue(i)-m.Mean, float64(count)
			second += k * delta * delta
			third += k * delta * delta * delta
			fourth += k * delta * delta * delta * delta
		}
	}
	if d.N > 1 {
		m.Variance = second / (n - 1)
	}
	m.Deviation = math.Sqrt(m.Variance)
	if m.Deviation > 0 {
		m.Skewness = third / n / (m.Variance * m.Deviation)
		m.Kurtosis = fourth/n/(m.Variance*m.Variance) - 3
	}
	return m
}
