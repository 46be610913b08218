package httpapi

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
	var h histogram
	now := time.Unix(1_700_000_000, 0)
	for v := range uint64(1000) {
		h.record(v+1, now)
	}
	d := h.recent(now)
	if d.n != 1000 || h.count.Load() != 1000 || h.sum.Load() != 500_500 {
		t.Fatalf("n %d, count %d, sum %d", d.n, h.count.Load(), h.sum.Load())
	}
	for q, want := range map[float64]float64{0.5: 500, 0.9: 900, 0.99: 990} {
		if got := d.quantile(q); math.Abs(got-want) > want/16 {
			t.Errorf("quantile %g: %g", q, got)
		}
	}
	m := d.moments()
	for name, pair := range map[string][2]float64{
		"mean": {m.mean, 500.5}, "deviation": {m.deviation, 288.8}, "max": {m.max, 1000}, "kurtosis": {m.kurtosis, -1.2},
	} {
		if math.Abs(pair[0]-pair[1]) > math.Abs(pair[1])/16 {
			t.Errorf("%s: %g, want %g", name, pair[0], pair[1])
		}
	}
	if got := h.recent(now.Add(window)); got.n != 1000 {
		t.Errorf("after one window %d", got.n)
	}
	if got := h.recent(now.Add(2 * window)); got.n != 0 {
		t.Errorf("after two windows %d", got.n)
	}
	h.record(5, now.Add(2*window))
	if got := h.recent(now.Add(2 * window)); got.n != 1 {
		t.Errorf("the slot was not emptied: %d", got.n)
	}
	var none distribution
	if none.quantile(0.5) != 0 || none.moments() != (moments{}) {
		t.Error("an empty distribution has figures")
	}
}

func TestHistogramFromManyGoroutines(t *testing.T) {
	var h histogram
	var wg sync.WaitGroup
	now := time.Now()
	for range 8 {
		wg.Go(func() {
			for v := range uint64(1000) {
				h.record(v, now)
			}
		})
	}
	wg.Wait()
	if d := h.recent(now); d.n != 8000 || h.count.Load() != 8000 {
		t.Errorf("n %d, count %d", d.n, h.count.Load())
	}
}
