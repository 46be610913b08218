package sim

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"divan/test/sim/convergence"
)

// balance is that copies are spread evenly over the nodes, after one of them was drained.
type balance struct {
	at      time.Duration
	drained int           // a node; -1: none
	back    time.Duration // after which it takes copies again; 0: it does not
}

func (b balance) String() string {
	switch {
	case b.drained < 0:
		return fmt.Sprintf("%v: rebalance", b.at)
	case b.back == 0:
		return fmt.Sprintf("%v: drain of node %d", b.at, b.drained)
	default:
		return fmt.Sprintf("%v: drain of node %d for %v", b.at, b.drained, b.back)
	}
}

// newBalances returns those of a plan. They have numbers of their own, so that all else of a seed
// is as it would be without.
func newBalances(p *plan) []balance {
	rng := rand.New(rand.NewPCG(p.seed, 5))
	if p.nodes == 3 && p.grow == 0 || rng.IntN(3) == 0 {
		return nil
	}
	var out []balance
	for range 1 + rng.IntN(2) {
		b := balance{at: time.Duration(1000+rng.Int64N(int64(p.heal/time.Millisecond))) * time.Millisecond, drained: -1}
		if rng.IntN(2) == 0 {
			if b.drained = rng.IntN(p.nodes); rng.IntN(2) == 0 {
				b.back = time.Duration(1+rng.IntN(20)) * time.Second
			}
		}
		if b.drained < 0 && p.grow > 0 {
			b.at = min(p.grow+time.Duration(rng.IntN(5000))*time.Millisecond, p.heal)
		}
		out = append(out, b)
	}
	return out
}

// balance sends the requests that a balance consists of. A request without an answer is
// tried again until nothing is broken.
func (w *world) balance(b balance) {
	<-time.After(b.at - w.clock())
	w.zap.Info("balance", zap.Stringer("balance", b))
	if b.drained < 0 {
		w.change(http.MethodPost, "/_cluster/rebalance", "")
		return
	}
	path := "/_node/" + w.machines[b.drained].name + "/_drain"
	w.change(http.MethodPost, path, "")
	if b.back > 0 {
		<-time.After(b.back)
		w.change(http.MethodDelete, path, "")
		w.change(http.MethodPost, "/_cluster/rebalance", "")
	}
}

// awaitBalance waits until no rebalance is under way. One that has to empty a node without another
// place for its copies has an end too.
func (w *world) awaitBalance() {
	err := w.until(splitTimeout, func() error {
		var out struct {
			State    string
			Running  []any
			Waiting  int
			Moved    any
			Failed   any
			Left     any
			Failures any
			Balance  bool
			Reason   string
		}
		if err := w.ask(w.present()[0], "/_cluster/rebalance", &out); err != nil {
			return err
		}
		if out.State == "running" || len(out.Running) > 0 {
			return fmt.Errorf("the rebalance is %+v", out)
		}
		return nil
	})
	if err != nil {
		w.wrong("%v", err)
	}
}

// spread has the copies of a node that is lost made anew on those that are there. It reports false
// when some cannot be.
func (w *world) spread(helper, old *machine) bool {
	var doc struct {
		Rev string `json:"_rev"`
	}
	path := "/_node/_local/_nodes/" + old.name
	err := w.until(patience, func() error {
		if err := w.ask(helper, path, &doc); err != nil {
			return err
		}
		return w.asker().Send(w.t.Context(), helper.target(), convergence.Request{Method: http.MethodDelete, Path: path + "?rev=" + url.QueryEscape(doc.Rev)}, nil)
	})
	if err != nil {
		w.wrong("%s is not taken out: %v", old.name, err)
		return true
	}
	w.change(http.MethodPost, "/_cluster/rebalance", "")
	return w.until(settling, func() error {
		places, err := w.asker().Placements(w.t.Context(), helper.target())
		if err != nil {
			return err
		}
		for name, p := range places {
			for span, nodes := range p.Nodes {
				for _, n := range nodes {
					if n == old.name {
						return fmt.Errorf("%s of %s is on %s", span, name, n)
					}
				}
			}
		}
		return nil
	}) == nil
}
