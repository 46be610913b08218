package bench

import (
	"context"
	"errors"
	"fmt"
)

// Against says what a server is compared with, and how often.
type Against struct {
	URL    string // of the other server
	PIDs   []int  // its processes, see Config.PIDs
	Rounds int    // in each of which both do every workload once
}

// Side is one of the two servers of a comparison.
type Side struct {
	Address string `json:"address"` // HOST:PORT
	Server  string `json:"server"`  // the Server header of the answer
	PIDs    []int  `json:"pids,omitempty"`
}

// Figures are those of one server in a workload: medians of its rounds, and the sum of the errors.
type Figures struct {
	PerSecond float64 `json:"per_second"`
	ServerCPU float64 `json:"server_cpu_ms,omitempty"`
	Errors    int64   `json:"errors"`
}

// Compared holds the figures of a workload on two servers. Each round has a ratio of the
// first server to the second.
type Compared struct {
	Name      string     `json:"name"`
	Unit      string     `json:"unit"` // what PerSecond counts
	Rounds    int        `json:"rounds"`
	Servers   [2]Figures `json:"servers"`
	PerSecond Ratio      `json:"per_second"`
	ServerCPU Ratio      `json:"server_cpu,omitzero"` // of the processor time of a request
}

// Comparison is the outcome of rounds on two servers.
type Comparison struct {
	Servers   [2]Side    `json:"servers"`
	Started   string     `json:"started"`
	Clients   int        `json:"clients"`
	Docs      int        `json:"docs"`
	DocSize   int        `json:"doc_size"`
	Rounds    int        `json:"rounds"` // that were wanted
	Workloads []Compared `json:"workloads"`
}

var (
	errRounds = errors.New("a comparison needs one round at least (--rounds)")
	errOnePID = errors.New("the processor time of both servers is compared or that of none: --pid needs --against-pid, and that one needs --pid")
)

// Compare measures each workload on the server of cfg and then, or before, on the other one, in
// every round. A round has databases of its own, which are dropped after it, unless they are kept.
// The comparison has the rounds that a workload has done on both when it fails. The constant
// handler is not asked: either server is the measure of the other.
func Compare(ctx context.Context, cfg Config, against Against) (*Comparison, error) {
	other := cfg
	other.URL, other.PIDs = against.URL, against.PIDs
	switch {
	case against.Rounds < 1:
		return nil, fmt.Errorf("%w, not %d", errRounds, against.Rounds)
	case (len(cfg.PIDs) > 0) != (len(other.PIDs) > 0):
		return nil, errOnePID
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if _, err := processTime(other.PIDs); err != nil {
		return nil, fmt.Errorf("the %s server: %w", sideName(1), err)
	}
	c := comparison{cfgs: [2]Config{cfg, other}, rounds: against.Rounds, results: map[string]*[2][]Result{}}
	report := &Comparison{Started: now(), Clients: cfg.Clients, Docs: cfg.Docs, DocSize: cfg.DocSize, Rounds: against.Rounds}
	var err error
	for nr := 0; nr < against.Rounds && err == nil; nr++ {
		err = c.round(ctx, nr)
	}
	report.Servers = c.sides
	for _, w := range workloads() {
		if results := c.results[w.name]; results != nil {
			report.Workloads = append(report.Workloads, compared(w, results))
		}
	}
	return report, err
}

// comparison holds the results of the rounds so far.
type comparison struct {
	cfgs    [2]Config
	sides   [2]Side
	rounds  int
	results map[string]*[2][]Result // by the name of the workload, as many of one server as of the other
}

func sideName(side int) string { return [...]string{"first", "second"}[side] }

// order is that of the servers in a round. It alternates, so that no one of them is always the one that finds
// what the other has left of the machine.
func order(round int) [2]int { return [2]int{round % 2, 1 - round%2} }

// round does every workload once on both servers, with databases of its own. Both are idle for a
// moment once these are dropped: the server whose databases went last had that work left when the
// next round began, and took a tenth more for it.
func (c *comparison) round(ctx context.Context, nr int) error {
	var servers [2]*bench
	defer rest(ctx, c.cfgs[0].Settle)
	for side, cfg := range c.cfgs {
		b, server, err := open(cfg)
		if err != nil {
			return fmt.Errorf("the %s server: %w", sideName(side), err)
		}
		defer b.cleanUp()
		servers[side], c.sides[side] = b, Side{Address: b.server.client.Addr, Server: server, PIDs: cfg.PIDs}
	}
	for _, w := range workloads() {
		if !c.cfgs[0].wants(w.name) {
			continue
		}
		var pair [2]Result
		for _, side := range order(nr) {
			shown := w
			shown.name = fmt.Sprintf("%s %d/%d %s", w.name, nr+1, c.rounds, sideName(side))
			var err error
			if pair[side], err = servers[side].measure(ctx, shown); err != nil {
				return fmt.Errorf("%s on the %s server in round %d: %w", w.name, sideName(side), nr+1, err)
			}
		}
		if c.results[w.name] == nil {
			c.results[w.name] = &[2][]Result{}
		}
		for side, r := range pair {
			c.results[w.name][side] = append(c.results[w.name][side], r)
		}
	}
	return nil
}

// compared sums up the rounds of a workload.
func compared(w workload, results *[2][]Result) Compared {
	out := Compared{Name: w.name, Unit: w.unit, Rounds: len(results[0])}
	var rates, times [2][]float64
	for side, rounds := range results {
		for _, r := range rounds {
			rates[side], times[side] = append(rates[side], r.PerSecond), append(times[side], r.ServerCPU)
			out.Servers[side].Errors += r.Errors
		}
		out.Servers[side].PerSecond, out.Servers[side].ServerCPU = median(rates[side]), median(times[side])
	}
	out.PerSecond, out.ServerCPU = ratioOf(rates[0], rates[1]), ratioOf(times[0], times[1])
	return out
}
