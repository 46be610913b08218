package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"divan/cmd/divan/clusterctl"
	"divan/cmd/divan/httpclient"
)

// operator runs `divan cluster` at a node.
type operator struct {
	home     *home
	ctx      context.Context
	terminal bool
	ask      func(context.Context, string) (bool, error)
	out      string // of the last command, as progress
	progress string
}

func (h *home) operator() *operator { return &operator{home: h, ctx: h.town.t.Context()} }

func (o *operator) run(do func(context.Context, clusterctl.Config) error) error {
	var out, progress bytes.Buffer
	err := do(o.ctx, clusterctl.Config{
		Server: httpclient.Server{URL: "http://" + strings.TrimPrefix(o.home.name, "divan@") + ":5984", User: "adm", Password: "pass"},
		Client: httpclient.Options{HTTP: o.home.town.client, UserAgent: "test"},
		Out:    &out, Progress: &progress, Terminal: o.terminal, Ask: o.ask,
	})
	o.out, o.progress = out.String(), progress.String()
	return err
}

func (o *operator) status() error {
	return o.run(func(ctx context.Context, cfg clusterctl.Config) error { return clusterctl.Status(ctx, cfg, false) })
}

func (o *operator) rebalance(what clusterctl.RebalanceOptions) error {
	return o.run(func(ctx context.Context, cfg clusterctl.Config) error { return clusterctl.Rebalance(ctx, cfg, what) })
}

func (o *operator) drain(what clusterctl.DrainOptions) error {
	return o.run(func(ctx context.Context, cfg clusterctl.Config) error { return clusterctl.Drain(ctx, cfg, what) })
}

func (o *operator) reshard(what clusterctl.JobRequest, noWait bool) error {
	return o.run(func(ctx context.Context, cfg clusterctl.Config) error {
		return clusterctl.Reshard(ctx, cfg, what, noWait)
	})
}

// wantOut wants an output, in which sizes are SIZE and whose blanks do not count.
func (o *operator) wantOut(want string) {
	o.home.town.t.Helper()
	if got := plainSizes(o.out); got != plainSizes(want) {
		o.home.town.t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func plainSizes(text string) string {
	text = regexp.MustCompile(`[0-9.]+ [kMG]?B`).ReplaceAllString(text, "SIZE")
	return regexp.MustCompile(`(?m) +`).ReplaceAllString(text, " ")
}

// wantError wants an error of one line with a text.
func (w *town) wantError(err error, text string) {
	w.t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
		w.t.Errorf("error %v, want %s", err, text)
	}
}

func TestClusterStatus(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, c := w.seeded()
		w.eventually("the first leads", func() bool { return a.node.meta.Leader() != "" })
		leader := a.node.meta.Leader()
		o := a.operator()
		if err := o.status(); err != nil {
			t.Error(err)
		}
		o.wantOut(`NODE STATE ZONE VERSION COPIES DATA
divan@10.0.0.1 here - test 5 SIZE
divan@10.0.0.2 here - test 5 SIZE
divan@10.0.0.3 here - test 5 SIZE

Metadata ` + leader + ` leads, 3 nodes vote
Rebalance none
Jobs none
Shards none lost, none joining
`)
		a.want("POST", "/_node/"+c.name+"/_drain", "", "202")
		c.kill()
		w.eventually("it is away", func() bool {
			return !strings.Contains(strings.Split(a.ask("GET", "/_membership", ""), "cluster_nodes")[0], c.name)
		})
		w.eventually("there is a leader", func() bool { return a.node.meta.Leader() != "" && a.node.meta.Leader() != c.name })
		w.wantError(o.status(), c.name+" is away")
		if want := "divan@10.0.0.3 away, draining - - 5 -\n"; !strings.Contains(plainSizes(o.out), want) {
			t.Errorf("no %s in\n%s", want, o.out)
		}
		err := o.run(func(ctx context.Context, cfg clusterctl.Config) error { return clusterctl.Status(ctx, cfg, true) })
		w.wantError(err, c.name+" is away")
		var s struct {
			OK       bool
			Problems []string
			Nodes    []struct {
				Node, State string
				Bytes       *int64
			}
		}
		if err := json.Unmarshal([]byte(o.out), &s); err != nil || s.OK || len(s.Problems) != 1 || len(s.Nodes) != 3 ||
			s.Nodes[0].Bytes == nil || s.Nodes[2].Bytes != nil || s.Nodes[2].State != "away" || strings.Count(o.out, "\n") != 1 {
			t.Errorf("%+v %v\n%s", s, err, o.out)
		}
	})
}

// A plan is shown, asked about, begun and followed, at a terminal and elsewhere; what follows it may end before it.
func TestClusterRebalance(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.fillTown(12)
		o := a.operator()
		if err := o.rebalance(clusterctl.RebalanceOptions{}); err != nil || !strings.HasSuffix(o.out, "\n\nThere is nothing to move.\n") {
			t.Errorf("%v\n%s", err, o.out)
		}
		w.wantError(o.rebalance(clusterctl.RebalanceOptions{Follow: true}), "there was no rebalance yet")
		w.wantError(o.rebalance(clusterctl.RebalanceOptions{Stop: true}), "PUT 10.0.0.1:5984/_cluster/rebalance: status 404")
		d := w.build(4, seedList, secret0, openToAll)
		w.start(d)
		d.soon("GET", "/_up", "", "200")

		if err := o.rebalance(clusterctl.RebalanceOptions{}); !errors.Is(err, clusterctl.ErrUnattended) {
			t.Error(err)
		}
		if err := o.rebalance(clusterctl.RebalanceOptions{DryRun: true}); err != nil {
			t.Error(err)
		}
		for _, want := range []string{
			`^NODE ZONE NOW AFTER GOAL\ndivan@10.0.0.1 - SIZE SIZE SIZE\n`, `\ndivan@10.0.0.4 - 0 B SIZE SIZE\n\n\d\d copies to move, SIZE \(to balance the nodes takes at least SIZE\):\n`,
			`\n DATABASE RANGE FROM TO SIZE REASON\n`, `\n db\d+ [0-9a-f-]{17} divan@10.0.0.[123] divan@10.0.0.4 SIZE balance\n`, `\n and \d+ more\n$`,
		} {
			if !regexp.MustCompile(strings.ReplaceAll(want, "0 B", "SIZE")).MatchString(plainSizes(o.out)) {
				t.Errorf("no %s in\n%s", want, plainSizes(o.out))
			}
		}
		o.ask = func(_ context.Context, question string) (bool, error) {
			if !regexp.MustCompile(`^Move \d+ copies, [0-9.]+ [kM]?B\?$`).MatchString(question) {
				t.Error(question)
			}
			return false, nil
		}
		w.wantError(o.rebalance(clusterctl.RebalanceOptions{}), "nothing was begun")
		a.want("GET", "/_cluster/rebalance", "", `200 {"state":"none"`)

		maxJobs("0", a, b, c, d)                              // it is under way for as long as it is looked at
		o.ask = func(context.Context, string) (bool, error) { // another client is faster
			b.want("POST", "/_cluster/rebalance", "", "202") //nolint:contextcheck // the test's own
			return true, nil
		}
		w.wantError(o.rebalance(clusterctl.RebalanceOptions{}), "POST 10.0.0.1:5984/_cluster/rebalance?limit=0: status 409, conflict: A rebalance is under way.")
		w.wantError(o.rebalance(clusterctl.RebalanceOptions{}), "a rebalance is under way (")

		ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
		defer cancel()
		o.ctx, o.terminal = ctx, true
		w.wantError(o.rebalance(clusterctl.RebalanceOptions{Follow: true}), "no longer followed. The rebalance goes on. "+
			"Follow it again: divan cluster rebalance http://adm@10.0.0.1:5984 --follow. Stop it: divan cluster rebalance http://adm@10.0.0.1:5984 --stop")
		o.ctx = w.t.Context()
		if err := o.rebalance(clusterctl.RebalanceOptions{Stop: true}); err != nil || !strings.Contains(o.out, "begins nothing more") {
			t.Errorf("%v %s", err, o.out)
		}
		w.wantError(o.rebalance(clusterctl.RebalanceOptions{Follow: true}), "the rebalance was stopped (Stopped by user); --resume has it go on")
		maxJobs("48", a, b, c, d)
		if err := o.rebalance(clusterctl.RebalanceOptions{Resume: true, NoWait: true}); err != nil {
			t.Error(err)
		}
		if err := o.rebalance(clusterctl.RebalanceOptions{Follow: true}); err != nil {
			t.Error(err)
		}
		if !strings.Contains(o.progress, "100 %") || !regexp.MustCompile(`^\d\d copies moved, [0-9.]+ [kM]B\.\n$`).MatchString(o.out) {
			t.Errorf("%s\n%s", o.progress, o.out)
		}
		if err := o.status(); err != nil || !strings.Contains(o.out, "\nRebalance  completed: ") {
			t.Errorf("%v\n%s", err, o.out)
		}
	})
}

// maxJobs sets how many jobs of resharding nodes have under way at most.
func maxJobs(n string, nodes ...*home) {
	for _, h := range nodes {
		h.want("PUT", "/_node/_local/_config/reshard/max_jobs", `"`+n+`"`, "200")
	}
}

// A node is drained, with a line for each copy that has moved, and taken out as the last line says.
func TestClusterDrain(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, _ := w.fillTown(4)
		o := a.operator()
		w.wantError(o.drain(clusterctl.DrainOptions{Node: "nobody@x", Yes: true}), "POST 10.0.0.1:5984/_node/nobody@x/_drain: status 404, not_found: no such node: nobody@x")
		if err := o.drain(clusterctl.DrainOptions{Node: b.name, DryRun: true}); err != nil {
			t.Error(err)
		}
		o.wantOut(`divan@10.0.0.2 has 15 copies. 0 copies, SIZE, to move to other nodes.

Left as they are:
 15 copies (such as _global_changes 00000000-ffffffff divan@10.0.0.2), SIZE, draining: each node has a copy of the range
`)
		w.wantError(o.drain(clusterctl.DrainOptions{Node: b.name, Yes: true}), "15 copies stay on divan@10.0.0.2")
		if err := o.drain(clusterctl.DrainOptions{Node: b.name, Undo: true}); err != nil {
			t.Error(err)
		}
		a.want("GET", "/_node/"+b.name+"/_drain", "", `200 {"node":"`+b.name+`","draining":false`)

		d := w.build(4, seedList, secret0, openToAll)
		w.start(d)
		d.soon("GET", "/_up", "", "200")
		start := time.Now()
		if err := o.drain(clusterctl.DrainOptions{Node: b.name, Yes: true}); err != nil {
			t.Fatal(err)
		}
		moved := regexp.MustCompile(`(?m)^moved \S+ [0-9a-f-]{17} from divan@10.0.0.2 to divan@10.0.0.4, [0-9.]+ k?B$`).FindAllString(o.progress, -1)
		others := strings.Count(o.progress, "\n") - len(moved)
		if len(moved) != 15 || others > int(time.Since(start)/time.Second)+1 || !strings.Contains(o.progress, "\n0 copies left on divan@10.0.0.2; 15 of 15 copies moved, ") {
			t.Errorf("%d moves, %d other lines in %v\n%s", len(moved), others, time.Since(start), o.progress)
		}
		last := regexp.MustCompile(`divan@10.0.0.2 is drained: .*\n\n    curl -u adm -X DELETE 'http://10.0.0.1:5984(/\S+)'\n$`).FindStringSubmatch(o.out)
		if last == nil {
			t.Fatal(o.out)
		}
		a.want("DELETE", last[1], "", "200")
		if err := o.status(); err != nil || strings.Contains(o.out, "\n"+b.name) {
			t.Errorf("%v\n%s", err, o.out)
		}
	})
}

// Jobs are made and followed by their steps; one that does not complete is an error with its reason.
func TestClusterJobs(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, _ := w.seeded()
		a.fill("pond")
		o := a.operator()
		o.terminal = true
		if err := o.reshard(clusterctl.JobRequest{Type: "split", Database: "pond", Range: "00000000-7fffffff"}, false); err != nil {
			t.Error(err)
		}
		if !regexp.MustCompile(`^3 jobs of 3 shard copies.\n3 completed in [0-9.ms]+\.\n$`).MatchString(o.out) || !strings.Contains(o.progress, " %  0 of") {
			t.Errorf("%s\n%s", o.out, o.progress)
		}
		o.terminal = false
		if err := o.reshard(clusterctl.JobRequest{Type: "merge", Database: "pond", Range: "00000000-7fffffff", Node: b.name}, false); err != nil {
			t.Error(err)
		}
		if !regexp.MustCompile(`\nmerge shards/\S+/pond\.\d+ on divan@10.0.0.2: completed\n1 of 1 job done\n$`).MatchString(o.progress) {
			t.Error(o.progress)
		}
		w.wantError(o.reshard(clusterctl.JobRequest{Type: "split", Database: "lake"}, false), "POST 10.0.0.1:5984/_reshard/jobs: status 400, bad_request: Invalid `db`")
		w.wantError(o.reshard(clusterctl.JobRequest{Type: "move", Database: "pond", Node: a.name, Target: b.name}, false), "status 400, bad_request: ")

		d := w.build(4, seedList, secret0, openToAll)
		w.start(d)
		d.soon("GET", "/_up", "", "200")
		d.kill()
		move := clusterctl.JobRequest{Type: "move", Database: "pond", Range: "80000000-ffffffff", Node: b.name, Target: d.name}
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			<-time.After(5 * time.Second)
			var all struct{ Jobs []struct{ ID, Type string } }
			a.json("/_reshard/jobs", &all)
			for _, j := range all.Jobs {
				if j.Type == "move" {
					a.want("PUT", "/_reshard/jobs/"+j.ID+"/state", `{"state":"stopped","reason":"lunch"}`, "200")
				}
			}
		}()
		w.wantError(o.reshard(move, false), "1 of 1 job not completed; the last one: move shards/80000000-ffffffff/pond.")
		<-stopped
		if !strings.Contains(o.progress, " on divan@10.0.0.2 to divan@10.0.0.4: stopped (lunch)\n") {
			t.Error(o.progress)
		}
		w.wantError(o.reshard(move, true), "on divan@10.0.0.2: ") // it is there already
	})
}

// A node that restarts while it is asked is asked again.
func TestClusterFollowsThroughRestart(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.fillTown(4)
		d := w.build(4, seedList, secret0, openToAll)
		w.start(d)
		d.soon("GET", "/_up", "", "200")
		maxJobs("0", a, b, c, d) // until the node is back
		o := c.operator()
		if err := o.rebalance(clusterctl.RebalanceOptions{Yes: true, NoWait: true}); err != nil {
			t.Fatal(err)
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			<-time.After(3 * time.Second)
			c.kill()
			<-time.After(30 * time.Second)
			c.start()
			maxJobs("48", a, b, c, d)
		}()
		if err := o.rebalance(clusterctl.RebalanceOptions{Follow: true}); err != nil || !strings.Contains(o.progress, "; asking again\n") {
			t.Errorf("%v\n%s", err, o.progress)
		}
		<-back
		a.wantCopies(3)
	})
}
