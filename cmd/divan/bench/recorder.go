package bench

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// recorder counts what the clients of one workload did.
type recorder struct {
	w        workload
	progress io.Writer
	pids     []int         // of the server
	start    time.Time     // of the first request
	took     time.Duration // from then to the end of the last one
	cpu      float64       // seconds of processor time that the server had used at the start, then those between
	perItem  bool          // processor time is told for each of the unit, not for each request
	constant usage         // of the constant handler under the same requests
	count    atomic.Int64
	errors   atomic.Int64
	mu       struct {
		sync.Mutex
		latency *hdrhistogram.Histogram
	}
}

func newRecorder(w workload, cfg Config) *recorder {
	r := &recorder{w: w, progress: cfg.Progress, pids: cfg.PIDs}
	r.mu.latency = hdrhistogram.New(1, 600_000_000, 3) // from a microsecond to ten minutes
	return r
}

// begin starts the clocks. A workload calls it when it has prepared what it needs.
func (r *recorder) begin() (err error) {
	r.cpu, err = processTime(r.pids)
	r.start = time.Now()
	return err
}

// end stops the clocks, as soon as the last request has ended.
func (r *recorder) end() error {
	r.took = time.Since(r.start)
	cpu, err := processTime(r.pids)
	r.cpu = cpu - r.cpu
	return err
}

// record counts what a request got done and how long it took. One histogram for
// all clients is less to keep in the processor's caches than one for each.
func (r *recorder) record(done int64, took time.Duration) error {
	r.count.Add(done)
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.mu.latency
	if err := h.RecordValue(min(took.Microseconds(), h.HighestTrackableValue())); err != nil {
		return fmt.Errorf("record a latency: %w", err)
	}
	return nil
}

// showProgress prints the count twice a second until the function that it
// returns is called; that one waits for the goroutine.
func (r *recorder) showProgress(ctx context.Context) (stop func()) {
	if r.progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				fmt.Fprintf(r.progress, "\r%-60s\r", "")
				return
			case <-tick.C:
				fmt.Fprintf(r.progress, "\r%-20s %14d %s", r.w.name, r.count.Load(), r.w.unit)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// usage is the processor time that requests took.
type usage struct {
	seconds  float64
	requests int64
}

// perRequest is in milliseconds.
func (u usage) perRequest() float64 { return u.seconds * 1000 / float64(max(u.requests, 1)) }

// usage is that of the server, once the clocks have stopped.
func (r *recorder) usage() usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return usage{r.cpu, r.mu.latency.TotalCount() + r.errors.Load()}
}

// result sums up what there is when the clocks have stopped.
func (r *recorder) result() Result {
	n, used := r.count.Load(), r.usage()
	if r.perItem {
		used.requests = n
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ms := func(q float64) float64 { return float64(r.mu.latency.ValueAtQuantile(q)) / 1000 }
	out := Result{
		Name: r.w.name, Unit: r.w.unit, Count: n, Seconds: r.took.Seconds(), PerSecond: float64(n) / r.took.Seconds(),
		Errors: r.errors.Load(), P50: ms(50), P90: ms(90), P99: ms(99), Max: float64(r.mu.latency.Max()) / 1000,
		ServerCPU: used.perRequest(), HandlerCPU: r.constant.perRequest(),
	}
	if out.HandlerCPU > 0 { // or it was asked for too short a time to be counted
		out.Handlers = out.ServerCPU / out.HandlerCPU
	}
	return out
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
