package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"divan/test/sim/convergence"
	"divan/test/sim/dump"
	"divan/test/sim/history"
	"divan/test/sim/workload"
)

const (
	startTimeout    = 60 * time.Second // for nodes to start and a cluster to form
	convergeTimeout = 5 * time.Minute  // for copies to become the same once all is healed
)

// cluster is all processes and who asks them.
type cluster struct {
	config
	procs []*process
	rng   *rand.Rand
	asker convergence.Asker
	start time.Time
}

func newCluster(c config, procs []*process) *cluster {
	return &cluster{
		config: c, procs: procs, rng: rand.New(rand.NewPCG(c.seed, 1)), start: time.Now(),
		asker: convergence.Asker{HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}, User: user, Password: password},
	}
}

func (c *cluster) clock() time.Duration { return time.Since(c.start) }

func (c *cluster) targets() []workload.Target {
	var out []workload.Target
	for _, p := range c.procs {
		out = append(out, p.target())
	}
	return out
}

func (c *cluster) anyTarget() workload.Target { return c.procs[c.rng.IntN(len(c.procs))].target() }

// killAll ends what still runs.
func (c *cluster) killAll() {
	for _, p := range c.procs {
		if p.cmd != nil && p.running() {
			_ = p.kill() // it is running, and ours
		}
	}
}

// rounds runs one round after the other.
func (c *cluster) rounds(ctx context.Context) error {
	for nr := 1; nr == 1 || c.clock() < c.length; nr++ {
		began := c.clock()
		h, err := c.oneRound(ctx, nr)
		if err != nil {
			return fmt.Errorf("round %d: %w", nr, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.writeFailures(nr, h); err != nil {
			return err
		}
		found := history.Check(h)
		fmt.Printf("round %d: %v, %s, %d violations\n", nr, (c.clock() - began).Round(time.Second), summarize(h), len(found))
		if len(found) > 0 {
			return fmt.Errorf("round %d:\n    %.20000s", nr, strings.Join(found[:min(len(found), 20)], "\n    "))
		}
	}
	return nil
}

// writeFailures writes what got no good answer beside the logs of the nodes.
func (c *cluster) writeFailures(nr int, h *history.History) error {
	var out strings.Builder
	for i := range h.Failures {
		t := &h.Failures[i]
		fmt.Fprintf(&out, "%v %v %s %d %s: %s\n", t.Call, t.Return-t.Call, t.Node, t.Status, t.Request, strings.TrimSpace(t.Text))
	}
	return os.WriteFile(filepath.Join(c.dir, fmt.Sprintf("round-%d.txt", nr)), []byte(out.String()), 0o600)
}

// summarize counts what clients did.
func summarize(h *history.History) string {
	done := 0
	for i := range h.Edits {
		if h.Edits[i].Outcome.Done() {
			done++
		}
	}
	return fmt.Sprintf("%d of %d edits acknowledged, %d reads, %d pages of changes, %d operations on metadata, %d requests without a good answer",
		done, len(h.Edits), len(h.Reads), len(h.Pages), len(h.Metas), len(h.Failures))
}

// oneRound returns the history of a round.
func (c *cluster) oneRound(ctx context.Context, nr int) (*history.History, error) {
	if err := c.startAll(ctx); err != nil {
		return nil, err
	}
	o := workload.Options{
		Log: &history.Log{}, Clock: c.clock, Targets: c.targets, HTTP: c.asker.HTTP, User: user, Password: password,
		Databases: []string{fmt.Sprintf("r%d-a", nr), fmt.Sprintf("r%d-b", nr)}, Temporary: []string{fmt.Sprintf("r%d-t", nr)},
		Once: fmt.Sprintf("r%d-once", nr), Pause: c.pause, Timeout: 40 * time.Second,
	}
	for i, db := range o.Databases {
		r := convergence.Request{Method: http.MethodPut, Path: fmt.Sprintf("/%s?q=%d", db, 1+i)}
		if err := convergence.Until(ctx, startTimeout, func() error { return c.asker.Send(ctx, c.procs[0].target(), r, nil) }); err != nil {
			return nil, err
		}
		r = convergence.Request{Method: http.MethodPut, Path: "/" + db + "/_design/sim", Body: workload.DesignDocument}
		if err := convergence.Until(ctx, startTimeout, func() error { return c.asker.Send(ctx, c.procs[0].target(), r, nil) }); err != nil {
			return nil, err
		}
	}
	reshape := c.newReshaper(nr, o.Databases)
	if err := c.runClients(ctx, o, reshape.run); err != nil {
		return nil, err
	}
	fmt.Printf("    shards: %v\n", reshape.asked)
	return c.examine(ctx, o)
}

// startAll starts what does not run and waits until all nodes see each other.
func (c *cluster) startAll(ctx context.Context) error {
	for _, p := range c.procs {
		if p.cmd == nil || !p.running() {
			if err := p.start(ctx); err != nil {
				return err
			}
		}
	}
	for _, p := range c.procs {
		err := convergence.Until(ctx, startTimeout, func() error {
			var members struct {
				All     []string `json:"all_nodes"`
				Cluster []string `json:"cluster_nodes"`
			}
			err := c.asker.Get(ctx, p.target(), "/_membership", &members)
			if err == nil && (len(members.All) != len(c.procs) || len(members.Cluster) != len(c.procs)) {
				err = fmt.Errorf("%s sees %v of %v", p.name(), members.All, members.Cluster)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runClients lets clients work while things break, and shards are changed, and heals everything.
func (c *cluster) runClients(ctx context.Context, o workload.Options, reshape func(ctx context.Context)) error {
	ctx, cancel := context.WithTimeout(ctx, c.round)
	defer cancel()
	var clients sync.WaitGroup
	for i := range c.clients {
		client := workload.New(o, i, rand.New(rand.NewPCG(c.seed, c.rng.Uint64())))
		clients.Go(func() { client.Run(ctx) })
	}
	clients.Go(func() { reshape(ctx) })
	err := c.injectFaults(ctx)
	<-ctx.Done()
	clients.Wait()
	return errors.Join(err, c.healAll(context.WithoutCancel(ctx)))
}

// examine waits until the copies are the same, stops the nodes and reads what
// they hold.
func (c *cluster) examine(ctx context.Context, o workload.Options) (*history.History, error) {
	if err := c.startAll(ctx); err != nil {
		return nil, err
	}
	if err := c.awaitJobs(ctx); err != nil {
		return nil, fmt.Errorf("not all jobs have ended: %w", err)
	}
	if err := c.asker.Converge(ctx, c.targets(), convergeTimeout); err != nil {
		return nil, fmt.Errorf("no convergence: %w", err)
	}
	for _, db := range o.Databases {
		c.asker.Replay(ctx, o.Log, db, c.anyTarget, c.rng)
	}
	wanted, err := c.asker.Placements(ctx, c.procs[0].target())
	if err != nil {
		return nil, err
	}
	for _, p := range c.procs {
		if err := p.stop(); err != nil {
			return nil, err
		}
	}
	h := o.Log.History()
	current := func(db string) bool {
		return slices.Contains(o.Databases, db) || slices.Contains(o.Temporary, db) || strings.HasPrefix(db, o.Once)
	}
	for db := range wanted {
		if !current(db) {
			delete(wanted, db)
		}
	}
	for _, p := range c.procs {
		copies, problems, err := dump.Copies(ctx, dump.Options{
			Dir: p.dir, Node: p.name(), Wanted: func(db, suffix, span string) bool { // what was given up stays on the disk for a while
				return current(db) && wanted[db].Suffix == suffix && slices.Contains(wanted[db].Nodes[span], p.name())
			},
		})
		if err != nil {
			return nil, err
		}
		h.Copies, h.Wrong = append(h.Copies, copies...), append(h.Wrong, problems...)
	}
	h.Wrong = append(h.Wrong, convergence.MissingCopies(wanted, h.Copies)...)
	return h, nil
}
