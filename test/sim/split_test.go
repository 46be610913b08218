package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/test/sim/convergence"
)

// split is that shards of a database are split, merged or moved.
type split struct {
	kind     string // of job
	at       time.Duration
	database int
	node     int    // whose copy; -1: those of all nodes
	ring     uint64 // which of the ranges that there are
	removed  bool   // its jobs are removed after a while, else stopped and resumed
	after    time.Duration
	again    time.Duration // 0: it is neither
}

func (s split) String() string {
	out := fmt.Sprintf("%v: %s of database %d on node %d", s.at, s.kind, s.database, s.node)
	switch {
	case s.again == 0:
		return out
	case s.removed:
		return out + fmt.Sprintf(", given up after %v", s.after)
	default:
		return out + fmt.Sprintf(", stopped after %v for %v", s.after, s.again)
	}
}

// newSplits returns the splits of a plan. They have numbers of their own, so that all else
// of a seed is as it would be without.
func newSplits(p *plan) []split {
	rng, kinds := rand.New(rand.NewPCG(p.seed, 3)), rand.New(rand.NewPCG(p.seed, 4))
	var out []split
	if rng.IntN(3) == 0 {
		return nil
	}
	for range 1 + rng.IntN(3) {
		s := split{
			kind: []string{"split", "split", "merge", "move", "move"}[kinds.IntN(5)],
			at:   time.Duration(1000+rng.Int64N(int64(p.heal/time.Millisecond))) * time.Millisecond, database: rng.IntN(len(p.databases)),
			node: rng.IntN(p.nodes+3) - 3, ring: rng.Uint64(),
		}
		s.node = max(s.node, -1)
		if rng.IntN(3) == 0 {
			s.removed = rng.IntN(2) == 0
			s.after, s.again = time.Duration(rng.IntN(3000))*time.Millisecond, time.Duration(1+rng.IntN(8000))*time.Millisecond
		}
		out = append(out, s)
	}
	return out
}

// split sends the requests that a split consists of. A request without an answer is tried
// again until nothing is broken.
func (w *world) split(s split) {
	w.zap.Info("split", zap.Stringer("split", s))
	var made []string
	err := w.until(w.plan.heal+settling-w.clock(), func() (err error) {
		made, err = w.askSplit(s)
		return err
	})
	if err != nil {
		w.wrong("%v: %v", s, err)
		return
	}
	if s.again == 0 {
		return
	}
	<-time.After(s.after)
	for _, id := range made {
		if s.removed {
			w.change(http.MethodDelete, "/_reshard/jobs/"+id, "")
		} else {
			w.change(http.MethodPut, "/_reshard/jobs/"+id+"/state", `{"state":"stopped"}`)
		}
	}
	if s.removed {
		return
	}
	<-time.After(s.again)
	for _, id := range made {
		w.change(http.MethodPut, "/_reshard/jobs/"+id+"/state", `{"state":"running"}`)
	}
}

// askSplit makes jobs for a split through some node, and returns their ids.
func (w *world) askSplit(s split) ([]string, error) {
	through := w.targets()[0]
	places, err := w.asker().Placements(w.t.Context(), through)
	if err != nil {
		return nil, err
	}
	body := s.body(w, places[w.plan.databases[s.database].name])
	if body == nil {
		return nil, nil // as the copies are now there is nothing like that
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var made []struct{ ID, Error string }
	r := convergence.Request{Method: http.MethodPost, Path: "/_reshard/jobs", Body: string(text)}
	switch err := w.asker().Send(w.t.Context(), through, r, &made); {
	case convergence.Refused(err): // no such copy is full now, or it is split already
		return nil, nil
	case err != nil:
		return nil, err
	}
	var ids []string
	for _, j := range made {
		if j.ID != "" {
			ids = append(ids, j.ID)
		}
	}
	return ids, nil
}

// keepsGivenUp reports whether a node may have directories of copies that were given up while they were
// made. When it crashes right then they stay for an hour, as any that the map does not have.
func (p plan) keepsGivenUp(node int) bool {
	return slices.ContainsFunc(p.splits, func(s split) bool { return s.removed }) &&
		slices.ContainsFunc(p.faults, func(f fault) bool { return f.kind >= crash && slices.Contains(f.nodes, node) })
}

// mixed reports whether shards are merged or moved beside splits, so that jobs are in each other's way.
func (p plan) mixed() bool {
	return len(p.balances) > 0 || len(p.splits) > 1 && slices.ContainsFunc(p.splits, func(s split) bool { return s.kind != "split" })
}

// body is the request for what is to be done with copies that are placed like that.
func (s split) body(w *world, place convergence.Placement) map[string]string {
	ranges := slices.Sorted(maps.Keys(place.Nodes))
	if len(ranges) == 0 {
		return nil
	}
	at := int(s.ring % uint64(len(ranges)))
	body := map[string]string{"type": s.kind, "db": w.plan.databases[s.database].name, "range": ranges[at]}
	if s.node >= 0 {
		body["node"] = w.machines[s.node].name
	}
	switch s.kind {
	case "merge":
		if at+1 == len(ranges) {
			return nil
		}
		body["range"] = ranges[at][:8] + ranges[at+1][8:]
	case "move":
		holders := place.Nodes[ranges[at]]
		free := slices.IndexFunc(w.machines, func(m *machine) bool { return m.run != nil && !slices.Contains(holders, m.name) })
		if free < 0 || len(holders) == 0 {
			return nil
		}
		body["node"], body["target"] = holders[int(s.ring>>32)%len(holders)], w.machines[free].name
	}
	return body
}

// change changes a job, which may be gone.
func (w *world) change(method, path, body string) {
	err := w.until(w.plan.heal+settling-w.clock(), func() error {
		err := w.asker().Send(w.t.Context(), w.targets()[0], convergence.Request{Method: method, Path: path, Body: body}, nil)
		if convergence.Refused(err) {
			return nil
		}
		return err
	})
	if err != nil {
		w.wrong("%s %s: %v", method, path, err)
	}
}

// splitTimeout is how long jobs may take when nothing is broken.
const splitTimeout = 5 * time.Minute

// awaitSplits waits until all jobs are complete and nothing is left of those that were removed. A job that
// was to be stopped through a node that did not answer may be so after it was resumed: it is resumed again.
func (w *world) awaitSplits() {
	w.splits.Wait()
	done := 0
	err := w.until(splitTimeout, func() error {
		var out struct{ Jobs []job }
		if err := w.ask(w.present()[0], "/_reshard/jobs", &out); err != nil {
			return err
		}
		var left []error
		done = len(out.Jobs)
		for _, j := range out.Jobs {
			if j.State == "stopped" {
				w.change(http.MethodPut, "/_reshard/jobs/"+j.ID+"/state", `{"state":"running"}`)
			}
			if j.State == "failed" && w.plan.mixed() {
				continue // what another job has made of its copies is not what it was made for
			}
			if j.State != "completed" {
				left = append(left, fmt.Errorf("%s on %s: %s, %s: %s", j.Source, j.Node, j.State, j.Step, j.Info.Reason))
			}
		}
		return errors.Join(left...)
	})
	if err != nil {
		w.wrong("not all jobs are complete: %v", err)
	}
	w.t.Logf("%d jobs are complete", done)
}

// job is a job as the API shows it.
type job struct {
	ID, Source, Node string

	State string `json:"job_state"`
	Step  string `json:"split_state"`
	Info  struct {
		Reason string `json:"reason"`
	} `json:"state_info"`
}
