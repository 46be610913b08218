package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"divan/test/sim/convergence"
	"divan/test/sim/workload"
)

const (
	outageDB      = "outage"
	phaseLength   = 15 * time.Second // of each phase of an outage
	grace         = time.Second      // after which a node that is away must not be felt any more
	slowdown      = 3                // how much the 99th percentile may grow
	seeded        = 2000             // documents that are there from the start
	outageClients = 16
)

// operation is a kind of request whose time is taken.
type operation struct {
	name   string
	weight int
	make   func(rng *rand.Rand) (convergence.Request, string) // and the type of its body
}

const jsonType = "application/json"

func operations() []operation {
	filler := strings.Repeat("x", 900)
	boundary := "chaosboundary"
	content := strings.Repeat("c", 32<<10)
	get := func(path string) (convergence.Request, string) {
		return convergence.Request{Method: http.MethodGet, Path: path}, jsonType
	}
	some := func(rng *rand.Rand) string { return "/" + outageDB + "/s" + strconv.Itoa(rng.IntN(seeded)) }
	return []operation{
		{"put a document", 4, func(rng *rand.Rand) (convergence.Request, string) {
			return convergence.Request{Method: http.MethodPut, Path: fmt.Sprintf("/%s/d%016x", outageDB, rng.Uint64()), Body: `{"text":"` + filler + `"}`}, jsonType
		}},
		{"get a document", 6, func(rng *rand.Rand) (convergence.Request, string) { return get(some(rng)) }},
		{"_all_docs, 20 rows", 2, func(rng *rand.Rand) (convergence.Request, string) {
			return get(fmt.Sprintf("/%s/_all_docs?limit=20&include_docs=true&startkey=%%22s%d%%22", outageDB, rng.IntN(seeded)))
		}},
		{"_changes, 20 rows", 2, func(*rand.Rand) (convergence.Request, string) { return get("/" + outageDB + "/_changes?limit=20") }},
		{"put multipart, 32 KB", 1, func(rng *rand.Rand) (convergence.Request, string) {
			body := "--" + boundary + "\r\nContent-Type: application/json\r\n\r\n" +
				`{"_attachments":{"a":{"follows":true,"content_type":"application/octet-stream","length":` + strconv.Itoa(len(content)) + "}}}\r\n--" +
				boundary + "\r\n\r\n" + content + "\r\n--" + boundary + "--"
			return convergence.Request{Method: http.MethodPut, Path: fmt.Sprintf("/%s/a%016x", outageDB, rng.Uint64()), Body: body},
				"multipart/related; boundary=" + boundary
		}},
		{"get an attachment", 1, func(*rand.Rand) (convergence.Request, string) { return get("/" + outageDB + "/attached/a") }},
	}
}

// outages measures how long requests take when all three nodes are well, and
// when one of them is away in one way after the other. It is an error when the
// slowest of a hundred takes more than three times as long, or fails, later
// than a second after the node went.
func (c *cluster) outages(ctx context.Context) error {
	if err := c.startAll(ctx); err != nil {
		return err
	}
	if err := c.seedOutages(ctx); err != nil {
		return err
	}
	gone := c.procs[len(c.procs)-1]
	rest := c.targets()[:len(c.procs)-1]
	everyone := func(side []int) error {
		return errors.Join(c.dropPackets(ctx, side, 1), c.dropPackets(ctx, []int{0, 1}, 1))
	}
	var failed []error
	for _, o := range []fault{
		{"is killed", func(context.Context) error { return gone.kill() }, gone.start},
		{
			"stands still", func(context.Context) error { return gone.signal(syscall.SIGSTOP) },
			func(context.Context) error { return gone.signal(syscall.SIGCONT) },
		},
		{"is cut off", func(context.Context) error { return everyone([]int{len(c.procs) - 1}) }, c.healNetwork},
	} {
		healthy, err := c.measure(ctx, rest, nil)
		if err != nil {
			return err
		}
		away, err := c.measure(ctx, rest, func() error { return o.begin(ctx) })
		if err != nil {
			return err
		}
		if err := o.end(ctx); err != nil {
			return err
		}
		back := time.Now()
		if err := c.startAll(ctx); err != nil {
			return err
		}
		fmt.Printf("one of %d nodes %s:\n", len(c.procs), o.name)
		failed = append(failed, compare(healthy, away)...)
		if err := c.asker.Converge(ctx, c.targets(), convergeTimeout); err != nil {
			return fmt.Errorf("no convergence: %w", err)
		}
		fmt.Printf("    it is back, and all copies are the same %v later, of which %v are to be sure\n", time.Since(back).Round(time.Second), 10*time.Second)
	}
	return errors.Join(failed...)
}

// seedOutages makes what is read.
func (c *cluster) seedOutages(ctx context.Context) error {
	node := c.procs[0].target()
	err := convergence.Until(ctx, startTimeout, func() error {
		return c.asker.Send(ctx, node, convergence.Request{Method: http.MethodPut, Path: "/" + outageDB + "?q=2&n=3"}, nil)
	})
	if err != nil {
		return err
	}
	var body strings.Builder
	for i := range seeded {
		fmt.Fprintf(&body, `,{"_id":"s%d","text":%q}`, i, strings.Repeat("y", 900))
	}
	docs := convergence.Request{Method: http.MethodPost, Path: "/" + outageDB + "/_bulk_docs", Body: `{"docs":[` + body.String()[1:] + "]}"}
	if err := c.asker.Send(ctx, node, docs, nil); err != nil {
		return err
	}
	attached := convergence.Request{Method: http.MethodPut, Path: "/" + outageDB + "/attached", Body: `{"_attachments":{"a":{"data":"` + strings.Repeat("YWJj", 8<<10) + `"}}}`}
	return c.asker.Send(ctx, node, attached, nil)
}

// timed holds the times of one kind of request in a phase, in microseconds.
type timed struct {
	first, later *hdrhistogram.Histogram // within the grace, and after it
	failed       int                     // after the grace
	failure      string
}

// measure has clients ask some nodes for the length of a phase, and begins a
// fault when that begins.
func (c *cluster) measure(ctx context.Context, nodes []workload.Target, begin func() error) ([]timed, error) {
	ops := operations()
	all := make([]timed, len(ops))
	var deck []int
	for i, o := range ops {
		all[i] = timed{first: hdrhistogram.New(1, 60_000_000, 3), later: hdrhistogram.New(1, 60_000_000, 3)}
		for range o.weight {
			deck = append(deck, i)
		}
	}
	var mu sync.Mutex // guards all
	var clients sync.WaitGroup
	phase, cancel := context.WithTimeout(ctx, phaseLength)
	defer cancel()
	start := time.Now()
	for i := range outageClients {
		rng := rand.New(rand.NewPCG(c.seed, c.rng.Uint64()))
		clients.Go(func() {
			for phase.Err() == nil {
				c.wait(phase, time.Duration(rng.IntN(2*int(c.pause))))
				kind := deck[rng.IntN(len(deck))]
				r, contentType := ops[kind].make(rng)
				at := time.Now()
				err := c.exchange(ctx, nodes[i%len(nodes)], r, contentType)
				took := time.Since(at).Microseconds()
				mu.Lock()
				t := &all[kind]
				switch late := at.Sub(start) >= grace; {
				case late && err != nil:
					t.failed++
					t.failure = err.Error()
				case late:
					_ = t.later.RecordValue(took) // nothing takes over a minute
				default:
					_ = t.first.RecordValue(took)
				}
				mu.Unlock()
			}
		})
	}
	var err error
	if begin != nil {
		err = begin()
	}
	clients.Wait()
	return all, err
}

// exchange sends a request and reads the answer to its end.
func (c *cluster) exchange(ctx context.Context, node workload.Target, r convergence.Request, contentType string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, node.URL+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", contentType)
	res, err := c.asker.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s", r.Method, r.Path, res.Status)
	}
	return nil
}

// compare prints what was measured and returns what is too slow or failed.
func compare(healthy, away []timed) []error {
	var failed []error
	ms := func(h *hdrhistogram.Histogram, percentile float64) float64 {
		return float64(h.ValueAtPercentile(percentile)) / 1000
	}
	fmt.Printf("    %-24s %24s %24s %14s\n", "milliseconds", "healthy p50 p99", "away p50 p99", "first s max")
	for i, o := range operations() {
		h, a := healthy[i], away[i]
		before, after := ms(h.later, 99), ms(a.later, 99)
		fmt.Printf("    %-24s %15.2f %8.2f %15.2f %8.2f %14.2f   %d and %d requests, %d failed\n", o.name,
			ms(h.later, 50), before, ms(a.later, 50), after, ms(a.first, 100), h.later.TotalCount(), a.later.TotalCount(), h.failed+a.failed)
		if after > slowdown*before {
			failed = append(failed, fmt.Errorf("%s: the 99th percentile grew from %.2f to %.2f ms", o.name, before, after))
		}
		if n := h.failed + a.failed; n > 0 {
			failed = append(failed, fmt.Errorf("%s: %d requests failed: %s%s", o.name, n, h.failure, a.failure))
		}
	}
	return failed
}
