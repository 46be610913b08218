package sim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"divan/test/sim/convergence"
	"divan/test/sim/dump"
	"divan/test/sim/history"
	"divan/test/sim/workload"
)

// The environment variables that say what to run.
const (
	seedsVariable = "DIVAN_SIM_SEEDS" // how many
	seedVariable  = "DIVAN_SIM_SEED"  // the first, or the only one
	logVariable   = "DIVAN_SIM_LOG"   // a file for what the nodes of a failing run said

	// How often a seed that has failed is run again; when it is set, each seed is run
	// so often whether it fails or not.
	replaysVariable = "DIVAN_SIM_REPLAYS"
)

func number(t *testing.T, variable string, standard uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return standard
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSeeds runs clusters with faults.
func TestSeeds(t *testing.T) {
	first, seeds := number(t, seedVariable, 1), uint64(8)
	switch {
	case os.Getenv(seedVariable) != "":
		seeds = 1
	case testing.Short():
		seeds = 3
	}
	seeds = number(t, seedsVariable, seeds)
	times := number(t, replaysVariable, 50)
	var failing atomic.Int64
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			p := newPlan(seed)
			if os.Getenv(replaysVariable) != "" { // of a seed that is known to fail
				replaySeed(t, p, times)
				return
			}
			found, log := runSeed(t, p)
			if len(found) == 0 {
				return
			}
			t.Errorf("%v\n%d violations; replay with %s=%d", p, len(found), seedVariable, seed)
			for _, v := range found[:min(len(found), 20)] {
				t.Errorf("violation: %.6000s", v)
			}
			writeLog(t, log)
			if failing.Add(1) <= maxReplayed {
				replaySeed(t, p, times)
			}
		})
	}
}

// writeLog keeps what the nodes of a failing run logged, if a file for it is named.
func writeLog(t *testing.T, log []byte) {
	t.Helper()
	file := os.Getenv(logVariable)
	if file == "" {
		return
	}
	if err := os.WriteFile(file, log, 0o600); err != nil {
		t.Error(err)
	}
}

// maxReplayed is of how many failing seeds it is told how often they fail: when all do, the first
// few say enough.
const maxReplayed = 4

// runSeed runs a plan once. It returns the rules that were violated, and what the nodes
// logged.
func runSeed(t *testing.T, p plan) (found []string, log []byte) {
	t.Helper()
	defer expectEnd(p.seed)()
	written := &nodeLog{}
	var h *history.History
	synctest.Test(t, func(t *testing.T) { h = live(t, p, written.logger()) })
	if h == nil {
		return nil, nil
	}
	t.Log(h.Summary())
	found, log = history.Check(h), written.text()
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("panicked")) { // requests go on after one
			found = append(found, string(line))
		}
	}
	return found, log
}

// endWithin is how long one simulated cluster may take. The clock of a bubble that does not end
// goes on and on, so nothing else notices.
const endWithin = 10 * time.Minute

// expectEnd ends the process with the stacks of all goroutines when the function that it returns
// is not called in time.
func expectEnd(seed uint64) (ended func()) {
	watch := time.AfterFunc(endWithin, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("seed %d has not ended after %v", seed, endWithin))
	})
	return func() { watch.Stop() }
}

// replaySeed runs a plan so many times and says how often it fails: a seed fixes the
// faults and not the order in which goroutines run.
func replaySeed(t *testing.T, p plan, times uint64) {
	t.Helper()
	failed := 0
	for range times {
		if found, log := runSeed(t, p); len(found) > 0 {
			failed++
			t.Errorf("violation: %.1000s", found[0])
			writeLog(t, log)
		}
	}
	t.Logf("seed %d fails in %d of %d replays", p.seed, failed, times)
}

// nodeLog keeps what nodes log.
type nodeLog struct {
	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer.
func (j *nodeLog) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Write(b)
}

// Sync implements zapcore.WriteSyncer.
func (j *nodeLog) Sync() error { return nil }

func (j *nodeLog) text() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Bytes()
}

func (j *nodeLog) logger() *zap.Logger {
	level := zapcore.DebugLevel
	if os.Getenv(logVariable) == "" {
		level = zapcore.ErrorLevel
	}
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), j, level))
}

// live runs the cluster of a plan from its first to its last moment.
func live(t *testing.T, p plan, log *zap.Logger) *history.History {
	t.Helper()
	w := newWorld(t, p, log)
	if err := w.form(); err != nil {
		w.wrong("the cluster does not form: %v", err)
		w.finish()
		return w.log.History()
	}
	w.start = time.Now()
	w.nodes.Go(w.awaitVotes)
	for _, b := range p.balances {
		w.splits.Go(func() { w.balance(b) })
	}
	w.work(0, p.length, func() {
		for _, m := range p.moments() {
			<-time.After(m.at - w.clock())
			switch {
			case m.fault == grows:
				w.grow()
			case m.fault == splits:
				w.splits.Go(func() { w.split(m.split) })
			case m.begin:
				w.begin(m.fault)
			default:
				w.end(m.fault)
			}
		}
	})
	w.awaitSplits()
	w.awaitBalance()
	w.converge()
	for i := range p.replace {
		w.work((i+1)*p.clients, 20*time.Second, w.replace)
		w.awaitBalance()
		w.converge()
	}
	w.replay()
	w.askViews()
	wanted := w.shards()
	w.finish()
	w.dump(wanted)
	h := w.log.History()
	for _, c := range p.calm() {
		h.Calm = append(h.Calm, history.Span{Call: c[0], Return: c[1]})
	}
	return h
}

// work lets clients work for a while, and does something else meanwhile. The
// clients' numbers begin with first.
func (w *world) work(first int, length time.Duration, meanwhile func()) {
	ctx, cancel := context.WithTimeout(w.t.Context(), length)
	defer cancel()
	var clients sync.WaitGroup
	for i := range w.plan.clients {
		c := workload.New(w.options(), first+i, rand.New(rand.NewPCG(w.plan.seed, uint64(100+first+i))))
		clients.Go(func() { c.Run(ctx) })
	}
	meanwhile()
	<-ctx.Done()
	clients.Wait()
}

func (w *world) options() workload.Options {
	o := workload.Options{
		Log: &w.log, Clock: w.clock, Targets: w.targets, HTTP: w.http, User: admin, Password: password,
		Temporary: []string{"temp0", "temp1"}, Once: "once", Pause: w.plan.pause, Timeout: 40 * time.Second,
	}
	for _, d := range w.plan.databases {
		o.Databases = append(o.Databases, d.name)
	}
	return o
}

// target is a machine as clients know it.
func (m *machine) target() workload.Target {
	return workload.Target{Name: m.name, URL: "http://" + m.ip + ":" + httpPort}
}

func (w *world) asker() convergence.Asker {
	return convergence.Asker{HTTP: w.http, User: admin, Password: password}
}

// ask reads JSON from a machine's node.
func (w *world) ask(m *machine, path string, out any) error {
	return w.asker().Get(w.t.Context(), m.target(), path, out)
}

// put sends something to a machine's node.
func (w *world) put(m *machine, path, body string) error {
	return w.asker().Send(w.t.Context(), m.target(), convergence.Request{Method: http.MethodPut, Path: path, Body: body}, nil)
}

// form starts all nodes, waits until they are one cluster, and makes the
// databases.
func (w *world) form() error {
	for _, m := range w.machines {
		if err := w.boot(m); err != nil {
			return err
		}
	}
	for _, m := range w.machines {
		if _, err := m.ready(); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	for _, m := range w.machines {
		err := w.until(patience, func() error {
			var members struct {
				All     []string `json:"all_nodes"`
				Cluster []string `json:"cluster_nodes"`
			}
			err := w.ask(m, "/_membership", &members)
			if err == nil && (len(members.All) != len(w.machines) || len(members.Cluster) != len(w.machines)) {
				err = fmt.Errorf("%s sees %v of %v", m.name, members.All, members.Cluster)
			}
			return err
		})
		if err != nil {
			return err
		}
		w.setUp(m, true)
	}
	for _, d := range w.plan.databases {
		path := fmt.Sprintf("/%s?q=%d", d.name, d.q)
		if err := w.until(patience, func() error { return w.put(w.machines[0], path, "") }); err != nil {
			return err
		}
		path = "/" + d.name + "/_design/sim"
		err := w.until(patience, func() error {
			err := w.put(w.machines[0], path, workload.DesignDocument)
			if err == nil {
				return nil
			}
			var there struct{} // an attempt whose answer was lost
			return w.ask(w.machines[0], path, &there)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// until tries again until f has no error, at most for so long.
func (w *world) until(limit time.Duration, f func() error) error {
	return convergence.Until(w.t.Context(), limit, f)
}

// convergeTimeout is how long it may take after the last write until all copies
// are the same.
const convergeTimeout = 5 * time.Minute

// converge waits until no node has anything left to push to another.
func (w *world) converge() {
	var nodes []workload.Target
	for _, m := range w.present() {
		nodes = append(nodes, m.target())
	}
	if err := w.asker().Converge(w.t.Context(), nodes, convergeTimeout); err != nil {
		w.wrong("no convergence: %v", err)
	}
	for _, m := range w.present() {
		err := w.until(convergeTimeout, func() error {
			var shards struct {
				Lost    []string `json:"lost"`
				Joining []string `json:"joining"`
			}
			err := w.ask(m, "/_node/_local/_lost_shards", &shards)
			if err == nil && len(shards.Lost)+len(shards.Joining) > 0 {
				err = fmt.Errorf("lost are %q, joining %q", shards.Lost, shards.Joining)
			}
			return err
		})
		if err != nil {
			w.wrong("copies of %s are not full: %v", m.name, err)
		}
	}
	w.converged = w.clock()
}

// replay reads the feeds again from sequences that were handed out.
func (w *world) replay() {
	present := w.present()
	through := func() workload.Target { return present[w.rng.IntN(len(present))].target() }
	for _, d := range w.plan.databases {
		w.asker().Replay(w.t.Context(), &w.log, d.name, through, w.rng)
	}
}

// askViews reads the view of each database through every node, when all copies are
// the same.
func (w *world) askViews() {
	for _, d := range w.plan.databases {
		for _, m := range w.present() {
			final := history.View{DB: d.name, Node: m.name, Rows: map[string]string{}}
			var rows struct {
				Rows []workload.ViewRow `json:"rows"`
			}
			if err := w.ask(m, workload.ViewPath(d.name)+"?reduce=false", &rows); err != nil {
				final.Err = err.Error()
			}
			for _, r := range rows.Rows {
				final.Rows[r.ID] = r.Value
			}
			w.log.Note(func(h *history.History) { h.Views = append(h.Views, final) })
		}
	}
}

// shards asks where the copies of all databases are.
func (w *world) shards() map[string]convergence.Placement {
	out, err := w.asker().Placements(w.t.Context(), w.present()[0].target())
	if err != nil {
		w.wrong("%v", err)
	}
	return out
}

// finish stops every node.
func (w *world) finish() {
	w.http.CloseIdleConnections()
	var stopping sync.WaitGroup
	for _, m := range w.present() {
		if m.run == nil {
			continue
		}
		stopping.Go(func() { w.stop(m) })
	}
	stopping.Wait()
	w.nodes.Wait()
	w.http.CloseIdleConnections()
	w.client.Kill()
	<-time.After(time.Second) // net/http waits for clients to hang up
	if n := w.net.Open(); n > 0 {
		w.wrong("%d ends of connections are still open", n)
	}
}

// dump reads what all copies hold.
func (w *world) dump(wanted map[string]convergence.Placement) {
	for _, m := range w.present() {
		copies, problems, err := dump.Copies(w.t.Context(), dump.Options{
			FS: m.disk, Dir: dataDir, Node: m.name, Wanted: func(db, suffix, span string) bool {
				here := slices.Contains(wanted[db].Nodes[span], m.name)
				return wanted[db].Suffix == suffix && (here || !w.plan.returns() && !w.plan.keepsGivenUp(slices.Index(w.machines, m)))
			},
		})
		if err != nil {
			w.wrong("the disk of %s: %v", m.name, err)
		}
		w.log.Note(func(h *history.History) {
			h.Copies = append(h.Copies, copies...)
			h.Wrong = append(h.Wrong, problems...)
		})
	}
	copies := w.log.History().Copies
	for _, text := range slices.Concat(convergence.MissingCopies(wanted, copies), convergence.StrayCopies(wanted, copies)) {
		w.wrong("%s", text)
	}
}
