package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"divan/test/sim/convergence"
)

// reshaper splits, merges and moves shards, drains nodes and rebalances the cluster, all while other things break.
type reshaper struct {
	*cluster
	rng   *rand.Rand // its own: it works beside the faults
	dbs   []string
	asked map[string]int // requests that were accepted, by what they ask for
}

func (c *cluster) newReshaper(nr int, dbs []string) *reshaper {
	return &reshaper{c, rand.New(rand.NewPCG(c.seed, uint64(1000+nr))), dbs, map[string]int{}}
}

// reshapeEvery is how long it waits between two requests, on average.
const reshapeEvery = 6 * time.Second

// run sends one request after the other until ctx ends. What is refused, or not answered, is left at that.
func (r *reshaper) run(ctx context.Context) {
	for {
		r.wait(ctx, time.Duration(r.rng.Int64N(int64(2*reshapeEvery))))
		if ctx.Err() != nil {
			return
		}
		through := r.procs[r.rng.IntN(len(r.procs))]
		what, requests := r.draw(ctx, through)
		for _, q := range requests {
			if err := r.asker.Send(ctx, through.target(), q, nil); err != nil {
				what = ""
			}
		}
		if what != "" && len(requests) > 0 {
			r.asked[what]++
		}
	}
}

// draw returns requests and what they ask for; none when there is nothing like that now.
func (r *reshaper) draw(ctx context.Context, through *process) (what string, requests []convergence.Request) {
	node := r.procs[r.rng.IntN(len(r.procs))].name()
	switch what = []string{"split", "merge", "move", "move", "drain", "undrain", "rebalance"}[r.rng.IntN(7)]; what {
	case "drain":
		return what, []convergence.Request{{Method: http.MethodPost, Path: "/_node/" + node + "/_drain"}}
	case "undrain":
		return what, []convergence.Request{{Method: http.MethodDelete, Path: "/_node/" + node + "/_drain"}}
	case "rebalance":
		return what, []convergence.Request{{Method: http.MethodPost, Path: "/_cluster/rebalance"}}
	}
	places, err := r.asker.Placements(ctx, through.target())
	db := r.dbs[r.rng.IntN(len(r.dbs))]
	ranges := slices.Sorted(maps.Keys(places[db].Nodes))
	if err != nil || len(ranges) == 0 {
		return what, nil
	}
	at := r.rng.IntN(len(ranges))
	body := map[string]string{"type": what, "db": db, "range": ranges[at]}
	switch {
	case what == "split" && len(ranges) > 8:
		return what, nil
	case what == "merge" && at+1 < len(ranges):
		body["range"] = ranges[at][:8] + ranges[at+1][8:]
	case what == "merge":
		return what, nil
	case what == "move":
		holders := places[db].Nodes[ranges[at]]
		free := slices.IndexFunc(r.procs, func(p *process) bool { return !slices.Contains(holders, p.name()) })
		if free < 0 || len(holders) == 0 {
			return what, nil
		}
		body["node"], body["target"] = holders[r.rng.IntN(len(holders))], r.procs[free].name()
	}
	text, _ := json.Marshal(body) // texts: it cannot fail
	return what, []convergence.Request{{Method: http.MethodPost, Path: "/_reshard/jobs", Body: string(text)}}
}

// awaitJobs waits until all that was begun has ended, when nothing is broken any more. Jobs may be in each other's way,
// so some fail.
func (c *cluster) awaitJobs(ctx context.Context) error {
	at := c.procs[0].target()
	for _, p := range c.procs {
		undrain := convergence.Request{Method: http.MethodDelete, Path: "/_node/" + p.name() + "/_drain"}
		if err := convergence.Until(ctx, startTimeout, func() error { return c.asker.Send(ctx, at, undrain, nil) }); err != nil {
			return err
		}
	}
	return convergence.Until(ctx, convergeTimeout, func() error {
		var list struct {
			Jobs []struct {
				Source, Node string
				State        string `json:"job_state"`
				Step         string `json:"split_state"`
			}
		}
		if err := c.asker.Get(ctx, at, "/_reshard/jobs", &list); err != nil {
			return err
		}
		var left []error
		for _, j := range list.Jobs {
			if j.State == "new" || j.State == "running" {
				left = append(left, fmt.Errorf("%s on %s is %s, %s", j.Source, j.Node, j.State, j.Step))
			}
		}
		var is struct {
			State   string
			Running []any
			Waiting int
		}
		if err := c.asker.Get(ctx, at, "/_cluster/rebalance", &is); err != nil {
			return err
		}
		if is.State == "running" || len(is.Running) > 0 {
			left = append(left, fmt.Errorf("the rebalance is %+v", is))
		}
		return errors.Join(left...)
	})
}
