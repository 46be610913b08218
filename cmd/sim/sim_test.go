package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"divan/cmd/sim/dump"
	"divan/cmd/sim/history"
	"divan/cmd/sim/workload"
)

// The environment variables that say what to run.
const (
	seedsVariable = "DIVAN_SIM_SEEDS" // how many
	seedVariable  = "DIVAN_SIM_SEED"  // the first, or the only one
	logVariable   = "DIVAN_SIM_LOG"   // a file for what the nodes of a failing run said
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
	first, seeds := number(t, seedVariable, 1), uint64(20)
	switch {
	case os.Getenv(seedVariable) != "":
		seeds = 1
	case testing.Short():
		seeds = 3
	}
	seeds = number(t, seedsVariable, seeds)
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			p := newPlan(seed)
			journal := &journal{}
			var h *history.History
			synctest.Test(t, func(t *testing.T) { h = live(t, p, journal.logger()) })
			if h == nil {
				return
			}
			t.Log(h.Summary())
			found := history.Check(h)
			if len(found) == 0 {
				return
			}
			t.Errorf("%v\n%d violations; replay with %s=%d", p, len(found), seedVariable, seed)
			for _, v := range found[:min(len(found), 20)] {
				t.Errorf("violation: %.6000s", v)
			}
			if file := os.Getenv(logVariable); file != "" {
				if err := os.WriteFile(file, journal.text(), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// journal keeps what nodes log.
type journal struct {
	mu  sync.Mutex
	out bytes.Buffer
}

// Write implements io.Writer.
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Write(b)
}

// Sync implements zapcore.WriteSyncer.
func (j *journal) Sync() error { return nil }

func (j *journal) text() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Bytes()
}

func (j *journal) logger() *zap.Logger {
	if os.Getenv(logVariable) == "" {
		return zap.NewNop()
	}
	conf := zap.NewDevelopmentEncoderConfig()
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(conf), j, zapcore.DebugLevel))
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
	w.work(0, p.length, func() {
		for _, m := range p.moments() {
			<-time.After(m.at - w.clock())
			switch {
			case m.fault == grows:
				w.grow()
			case m.begin:
				w.begin(m.fault)
			default:
				w.end(m.fault)
			}
		}
	})
	w.converge()
	if p.replace {
		w.work(p.clients, 20*time.Second, w.replace)
		w.converge()
	}
	w.replay()
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
		Temporary: []string{"temp0", "temp1"}, Pause: w.plan.pause, Timeout: 40 * time.Second,
	}
	for _, d := range w.plan.databases {
		o.Databases = append(o.Databases, d.name)
	}
	return o
}

// ask sends a request without a body through a machine's node.
func (w *world) ask(m *machine, method, path string, out any) error {
	return w.send(m, method, path, "", out)
}

// send sends a request through a machine's node and decodes the answer.
func (w *world) send(m *machine, method, path, body string, out any) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+m.ip+":"+httpPort+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.SetBasicAuth(admin, password)
	req.Header.Set("Content-Type", "application/json")
	res, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		return err
	}
	if res.StatusCode >= 400 {
		return fmt.Errorf("%s %s through %s: %d %.200s", method, path, m.name, res.StatusCode, text.Bytes())
	}
	if out != nil {
		if err := json.Unmarshal(text.Bytes(), out); err != nil {
			return fmt.Errorf("%s %s through %s: %w", method, path, m.name, err)
		}
	}
	return nil
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
			err := w.ask(m, http.MethodGet, "/_membership", &members)
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
		if err := w.until(patience, func() error { return w.ask(w.machines[0], http.MethodPut, path, nil) }); err != nil {
			return err
		}
	}
	return nil
}

// until tries again each half second until f has no error, at most for so long.
func (w *world) until(limit time.Duration, f func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		<-time.After(500 * time.Millisecond)
	}
}

// convergence is how long it may take after the last write until all copies
// are the same; quiet is how long they must have had nothing to do by then.
const (
	convergence = 5 * time.Minute
	quiet       = 10 * time.Second
)

// converge waits until no node has anything left to push to another.
func (w *world) converge() {
	calm := time.Now()
	err := w.until(convergence, func() error {
		for _, m := range w.present() {
			var system struct {
				Jobs int `json:"internal_replication_jobs"`
			}
			if err := w.ask(m, http.MethodGet, "/_node/_local/_system", &system); err != nil {
				calm = time.Now()
				return err
			}
			if system.Jobs > 0 {
				calm = time.Now()
				return fmt.Errorf("%s has %d jobs left", m.name, system.Jobs)
			}
		}
		if time.Since(calm) < quiet {
			return fmt.Errorf("quiet only since %v", time.Since(calm))
		}
		return nil
	})
	if err != nil {
		w.wrong("no convergence: %v", err)
	}
	w.converged = w.clock()
}

// replays is how many sequences of each database are gone on from in the end.
const replays = 12

// replay reads the feeds again from sequences that were handed out.
func (w *world) replay() {
	for _, d := range w.plan.databases {
		places := []history.Since{{Page: history.Beginning}}
		w.log.Note(func(h *history.History) {
			for range 20 * replays {
				if len(places) > replays || len(h.Pages) == 0 {
					return
				}
				i := w.rng.IntN(len(h.Pages))
				rows := w.rng.IntN(len(h.Pages[i].Rows) + 1)
				if p := h.Pages[i]; p.DB == d.name && (rows > 0 || len(p.Rows) == 0 && p.Last != "") {
					places = append(places, history.Since{Page: i, Rows: rows})
				}
			}
		})
		for _, at := range places {
			w.replayFrom(d.name, at)
		}
	}
}

func (w *world) replayFrom(db string, at history.Since) {
	var seq string
	w.log.Note(func(h *history.History) { seq = h.Sequence(at) })
	r := history.Replay{DB: db, Since: at, Rows: map[string][]string{}}
	present := w.present()
	m := present[w.rng.IntN(len(present))]
	var answer json.RawMessage
	err := w.ask(m, http.MethodGet, "/"+db+"/_changes?style=all_docs&since="+url.QueryEscape(seq), &answer)
	var rows []history.Row
	if err == nil {
		rows, _, err = workload.Rows(answer, false)
	}
	if err != nil {
		r.Err = err.Error()
	}
	for _, row := range rows {
		r.Rows[row.ID] = row.Leaves
	}
	w.log.Note(func(h *history.History) { h.Replays = append(h.Replays, r) })
}

// placement is where the copies of one database must be.
type placement struct {
	suffix string
	nodes  map[string][]string // range → nodes
}

// shards asks where the copies of all databases are.
func (w *world) shards() map[string]placement {
	out := map[string]placement{}
	var names []string
	m := w.present()[0]
	if err := w.ask(m, http.MethodGet, "/_all_dbs", &names); err != nil {
		w.wrong("%v", err)
	}
	for _, db := range names {
		var shards struct {
			Suffix  []int               `json:"shard_suffix"`
			ByRange map[string][]string `json:"by_range"`
		}
		if err := w.ask(m, http.MethodGet, "/_node/_local/_dbs/"+db, &shards); err != nil {
			w.wrong("%v", err)
			continue
		}
		var suffix strings.Builder
		for _, c := range shards.Suffix {
			suffix.WriteByte(byte(c))
		}
		out[db] = placement{strings.TrimPrefix(suffix.String(), "."), shards.ByRange}
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
func (w *world) dump(wanted map[string]placement) {
	for _, m := range w.present() {
		copies, problems, err := dump.Copies(w.t.Context(), dump.Options{
			FS: m.disk, Dir: dataDir, Node: m.name, Wanted: func(db, suffix, _ string) bool { return wanted[db].suffix == suffix },
		})
		if err != nil {
			w.wrong("the disk of %s: %v", m.name, err)
		}
		w.log.Note(func(h *history.History) {
			h.Copies = append(h.Copies, copies...)
			h.Wrong = append(h.Wrong, problems...)
		})
	}
	h := w.log.History()
	for db, p := range wanted {
		for span, nodes := range p.nodes {
			for _, name := range nodes {
				found := false
				for _, c := range h.Copies {
					found = found || c.DB == db && c.Range == span && c.Node == name
				}
				if !found {
					w.wrong("%s has no copy of %s %s", name, db, span)
				}
			}
		}
	}
}
