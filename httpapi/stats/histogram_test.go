package stats

import (
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBucketsKnowAValueToASixteenth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(0, 1<<38).Draw(t, "v")
		i := bucketOf(v)
		if i < 0 || i >= buckets {
			t.Fatalf("%d is in bucket %d", v, i)
		}
		if got := bucketValue(i); math.Abs(got-float64(v)) > float64(v)/16 {
			t.Fatalf("%d counts as %f", v, got)
		}
		if v > 0 && bucketOf(v-1) > i {
			t.Fatalf("%d is in a higher bucket than %d", v-1, v)
		}
	})
	if bucketOf(math.MaxUint64) != buckets-1 {
		t.Error("the largest value has no bucket")
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	now := time.Unix(1_700_000_000, 0)
	for v := range uint64(1000) {
		h.record(v+1, now)
	}
	d := h.Recent(now)
	if d.N != 1000 || h.count.Load() != 1000 || h.sum.Load() != 500_500 {
		t.Fatalf("n %d, count %d, sum %d", d.N, h.count.Load(), h.sum.Load())
	}
	for q, want := range map[float64]float64{0.5: 500, 0.9: 900, 0.99: 990} {
		if got := d.Quantile(q); math.Abs(got-want) > want/16 {
			t.Errorf("quantile %g: %g", q, got)
		}
	}
	m := d.Moments()
	for name, pair := range map[string][2]float64{
		"mean": {m.Mean, 500.5}, "deviation": {m.Deviation, 288.8}, "max": {m.Max, 1000}, "kurtosis": {m.Kurtosis, -1.2},
	} {
		if math.Abs(pair[0]-pair[1]) > math.Abs(pair[1])/16 {
			t.Errorf("%s: %g, want %g", name, pair[0], pair[1])
		}
	}
	if got := h.Recent(now.Add(window)); got.N != 1000 {
		t.Errorf("after one window %d", got.N)
	}
	if got := h.Recent(now.Add(2 * window)); got.N != 0 {
		t.Errorf("after two windows %d", got.N)
	}
	h.record(5, now.Add(2*window))
	if got := h.Recent(now.Add(2 * window)); got.N != 1 {
		t.Errorf("the slot was not emptied: %d", got.N)
	}
	var none Distribution
	if none.Quantile(0.5) != 0 || none.Moments() != (Moments{}) {
		t.Error("an empty distribution has figures")
	}
}

func TestHistogramFromManyGoroutines(t *testing.T) {
	var h Histogram
	var wg sync.WaitGroup
	now := time.Now()
	h.slot(now) // values that come while a window begins may be lost
	for range 8 {
		wg.Go(func() {
			for v := range uint64(1000) {
				h.record(v, now)
			}
		})
	}
	wg.Wait()
	if d := h.Recent(now); d.N != 8000 || h.count.Load() != 8000 {
		t.Errorf("n %d, count %d", d.N, h.count.Load())
	}
}
