package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

const (
	faultDocs    = 1200 // that are copied while something goes wrong
	faultBatch   = 20   // changes that a worker compares and copies at once
	faultWorkers = 2
	fewestFaults = 8 // that a test has to have caused
)

// killCount is how often processes are to be killed.
func killCount(t *testing.T, most int) int {
	t.Helper()
	if testing.Short() {
		most = 1
	}
	if text := os.Getenv(killsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return most
}

// pair is two servers, and a replication that one of them does.
type pair struct {
	t         *testing.T
	rng       *rand.Rand
	processes [2]*process // source, target
	addresses [2]string   // theirs, which stay when they are killed and started again
	dirs      [2]string
	host      int    // who replicates
	via       string // host:port by which the other one is reached; empty: its own
	largest   int    // attachment, in bytes
	docs      int    // in the source
	leaves    int    // of them
}

// newPair starts two servers, of which the first one has documents with
// attachments of up to so many bytes.
func newPair(t *testing.T, host, docs, largest int) *pair {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %x", seed)
	p := &pair{t: t, rng: rand.New(rand.NewPCG(seed, 0)), host: host, largest: largest}
	for i := range p.dirs {
		p.dirs[i] = t.TempDir()
		p.processes[i] = startServer(t, adminEnviron(), "--data", p.dirs[i])
		p.addresses[i] = p.processes[i].address
	}
	p.client(0).want(t, "PUT", "/source?q=2", "", 201)
	p.more(docs)
	return p
}

// more writes further documents to the source.
func (p *pair) more(docs int) {
	p.t.Helper()
	p.leaves += fill(p.t, p.client(0), p.rng, [2]int{p.docs, p.docs + docs}, p.largest)
	p.docs += docs
}

func (p *pair) client(i int) *client { return newClient(p.t, p.addresses[i]) }

// own returns a generator for another goroutine.
func (p *pair) own() *rand.Rand { return rand.New(rand.NewPCG(p.rng.Uint64(), 0)) }

// body is the request of the replication.
func (p *pair) body() map[string]any {
	sides := [2]any{"source", "target"}
	via := p.via
	if via == "" {
		via = p.addresses[1-p.host]
	}
	sides[1-p.host] = fmt.Sprintf("http://adm:pass@%s/%s", via, sides[1-p.host])
	return map[string]any{
		"source": sides[0], "target": sides[1], "create_target": true, "worker_batch_size": faultBatch, "worker_processes": faultWorkers,
		"checkpoint_interval": 50, "connection_timeout": 5000, "retries_per_request": 5,
	}
}

// outcome is the answer to a replication that has ended, and its checkpoint.
type outcome struct {
	OK        bool      `json:"ok"`
	NoChanges bool      `json:"no_changes"`
	History   []session `json:"history"`
}

type session struct {
	Start    json.RawMessage `json:"start_last_seq"`
	Recorded json.RawMessage `json:"recorded_seq"`
	Checked  int             `json:"missing_checked"`
	Found    int             `json:"missing_found"`
	Read     int             `json:"docs_read"`
	Written  int             `json:"docs_written"`
	Failures int             `json:"doc_write_failures"`
}

// replicate asks for the replication again and again until it has come to its
// end.
func (p *pair) replicate() (*outcome, error) {
	var last string
	for deadline := time.Now().Add(4 * patience); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		c := p.client(p.host)
		c.http.Timeout = 4 * patience
		in, err := json.Marshal(p.body())
		if err != nil {
			return nil, err
		}
		status, answer, err := c.do("POST", "/_replicate", "application/json", in)
		if err == nil && status == 200 {
			var out outcome
			return &out, json.Unmarshal(answer, &out)
		}
		last = fmt.Sprintf("%d %s %v", status, answer, err)
	}
	return nil, fmt.Errorf("it does not come to its end: %s", last)
}

// finished looks at what a replication came to that was interrupted some times.
func (p *pair) finished(out *outcome, interrupted int) {
	p.t.Helper()
	wantSame(p.t, p.client(0), "source", p.client(1), "target")
	if !out.OK || len(out.History) == 0 {
		p.t.Fatalf("the outcome is %+v", out)
	}
	p.sessions(out.History, interrupted)
	again, err := p.replicate()
	if err != nil {
		p.t.Fatal(err)
	}
	if !again.NoChanges {
		p.t.Errorf("another replication had something to do: %+v", again)
	}
}

// sessions looks at the sessions of a replication that was interrupted some
// times, the newest first: each went on where the one before was last heard of,
// and what the target had was not copied again. What workers had read and the
// target did not have yet is read again.
func (p *pair) sessions(all []session, interrupted int) {
	p.t.Helper()
	for i, s := range all[:len(all)-1] {
		if string(s.Start) != string(all[i+1].Recorded) {
			p.t.Errorf("session %d began at %s, the one before had come to %s", i, s.Start, all[i+1].Recorded)
		}
	}
	last := all[0]
	p.t.Logf("%d leaves, %d sessions: %d checked, %d missing, %d read, %d written",
		p.leaves, len(all), last.Checked, last.Found, last.Read, last.Written)
	if most := p.leaves + interrupted*2*faultWorkers*faultBatch; last.Failures != 0 || last.Read > most || last.Written > most {
		p.t.Errorf("%d leaves, %d interruptions, but %d read, %d written, %d failed",
			p.leaves, interrupted, last.Read, last.Written, last.Failures)
	}
}

// TestKillDuringReplication kills the source or the target while one of them
// replicates, at random moments, and starts it again.
func TestKillDuringReplication(t *testing.T) {
	t.Parallel()
	for victim, side := range []string{"source", "target"} {
		for host, job := range []string{"push", "pull"} {
			if testing.Short() && host == victim {
				continue
			}
			t.Run(job+" and the "+side+" dies", func(t *testing.T) {
				p := newPair(t, host, faultDocs, 300_000)
				done := make(chan error, 1)
				var out *outcome
				go func() {
					var err error
					out, err = p.replicate()
					done <- err
				}()
				kills := killCount(t, 1)
				for i := range kills {
					p.killAt(victim, (p.rng.IntN(800)+100)/kills+800*i/kills)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				p.finished(out, kills)
				for i := range p.processes {
					p.processes[i].stop()
					checkDirectory(t, p.dirs[i])
				}
			})
		}
	}
}

// killAt kills a process when the target has so many documents, and starts it
// again.
func (p *pair) killAt(victim, docs int) {
	p.t.Helper()
	c := p.client(1)
	eventually(p.t, fmt.Sprint(docs, " documents are copied"), func() bool {
		var info struct {
			Docs    int `json:"doc_count"`
			Deleted int `json:"doc_del_count"`
		}
		status, err := c.call("GET", "/target", nil, &info)
		return err == nil && status == 200 && info.Docs+info.Deleted >= docs
	})
	c.http.CloseIdleConnections()
	at := p.processes[victim]
	at.kill()
	<-at.ended
	next := launch(p.t, adminEnviron(), "serve", "--listen", at.address, "--data", p.dirs[victim])
	next.awaitReady()
	p.processes[victim] = next
}

// TestReplicationThroughCuts replicates over connections that are cut after a
// random number of bytes.
func TestReplicationThroughCuts(t *testing.T) {
	t.Parallel()
	for host, job := range []string{"push", "pull"} {
		t.Run(job, func(t *testing.T) {
			p := newPair(t, host, faultDocs/2, 300_000)
			cuts := 15 * killCount(t, 1)
			c := startCutter(t, p.addresses[1-host], p.own(), cuts, 60_000)
			p.via = c.address()
			out, err := p.replicate()
			if err != nil {
				t.Fatal(err)
			}
			if cut := cuts - int(c.left.Load()); cut < fewestFaults {
				t.Errorf("only %d connections were cut", cut)
			}
			p.finished(out, cuts)
		})
	}
}

// TestContinuousThroughCuts has a continuous replication follow a database over
// connections that are cut.
func TestContinuousThroughCuts(t *testing.T) {
	t.Parallel()
	for host, job := range []string{"push", "pull"} {
		t.Run(job, func(t *testing.T) {
			p := newPair(t, host, 100, 10_000) // what is streamed is not tried as often, and a job of a request ends when it fails
			cuts := 15 * killCount(t, 1)
			c := startCutter(t, p.addresses[1-host], p.own(), cuts, 60_000)
			p.via = c.address()
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(p.client(host).want(t, "GET", "/_scheduler/jobs", "", 200), p.processes[host].output())
				}
			})
			in := p.body()
			in["continuous"] = true
			if status, err := p.client(host).call("POST", "/_replicate", in, nil); err != nil || status != 202 {
				t.Fatal(status, err)
			}
			for range 5 {
				p.more(100)
				wait(t, 2*patience, "everything is copied", func() bool {
					diff, err := differences(p.client(0), "source", p.client(1), "target")
					return err == nil && diff == ""
				})
			}
			if cut := cuts - int(c.left.Load()); cut < fewestFaults {
				t.Errorf("only %d connections were cut", cut)
			}
		})
	}
}

// TestReplicationThroughErrors replicates with a server of which some answers
// are lost, and which refuses some requests.
func TestReplicationThroughErrors(t *testing.T) {
	t.Parallel()
	for host, job := range []string{"push", "pull"} {
		t.Run(job, func(t *testing.T) {
			p := newPair(t, host, faultDocs/2, 300_000)
			spoilt := 15 * killCount(t, 1)
			address, left := startSpoiler(t, p.addresses[1-host], p.own(), spoilt)
			p.via = address
			out, err := p.replicate()
			if err != nil {
				t.Fatal(err)
			}
			if were := spoilt - left(); were < fewestFaults {
				t.Errorf("only %d answers were spoilt", were)
			}
			p.finished(out, spoilt)
		})
	}
}

// TestKillOfReplicatingNode kills the node that does the continuous replication of a
// document, or suspends it for so long that another one takes over: another
// goes on where that one was, and when it is back only one replicates.
func TestKillOfReplicatingNode(t *testing.T) {
	t.Parallel()
	o := newTown(t)
	o.create()
	was := ""
	for i := range killCount(t, 1) {
		node := o.runs(was)
		was = fmt.Sprintf("node%d@127.0.0.1", node+1)
		if o.rng.IntN(2) == i%2 {
			o.killed(node)
		} else {
			o.suspended(node)
		}
	}
	o.runs("")
	for _, p := range o.nodes {
		p.stop()
	}
}

// town is a cluster of three processes with a replication between databases of a
// fourth one.
type town struct {
	*pair // whose servers are one and the same
	nodes []*process
	dirs  []string
}

// newTown starts the processes.
func newTown(t *testing.T) *town {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %x", seed)
	o := &town{pair: &pair{t: t, rng: rand.New(rand.NewPCG(seed, 0)), largest: 300_000}}
	only := startServer(t, adminEnviron(), "--data", t.TempDir())
	o.processes = [2]*process{only, only}
	o.addresses = [2]string{only.address, only.address}
	var urls []string
	for i := range 3 {
		o.nodes, o.dirs = append(o.nodes, nil), append(o.dirs, t.TempDir())
		o.begin(i, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
		urls = append(urls, "http://"+o.nodes[i].address)
	}
	if status, out := run(t, nil, append([]string{"setup", "--admin", "adm:pass"}, urls...)...); status != 0 {
		t.Fatalf("setup: exit status %d, %s", status, out)
	}
	return o
}

func (o *town) begin(i int, listen string) {
	o.t.Helper()
	port := freePort(o.t)
	environ := append(adminEnviron(), fmt.Sprintf("NODENAME=node%d@127.0.0.1", i+1), "DIVAN_COUCHDB__SINGLE_NODE=false",
		"DIVAN_CLUSTER__BIND_ADDRESS=127.0.0.1", fmt.Sprintf("DIVAN_CLUSTER__PORT=%d", port),
		fmt.Sprintf("DIVAN_CLUSTER__ADVERTISE=127.0.0.1:%d", port))
	o.nodes[i] = launch(o.t, environ, "serve", "--data", o.dirs[i], "--listen", listen)
	o.nodes[i].awaitReady()
}

// create makes the document of the replication.
func (o *town) create() {
	o.t.Helper()
	o.client(0).want(o.t, "PUT", "/source?q=2", "", 201)
	o.more(300)
	in, err := json.Marshal(map[string]any{
		"source": fmt.Sprintf("http://adm:pass@%s/source", o.processes[0].address), "create_target": true, "continuous": true,
		"target":              fmt.Sprintf("http://adm:pass@%s/target", o.processes[0].address),
		"checkpoint_interval": 50, "worker_batch_size": faultBatch, "worker_processes": faultWorkers, "connection_timeout": 5000,
	})
	if err != nil {
		o.t.Fatal(err)
	}
	eventually(o.t, "the document is written", func() bool {
		status, _, err := newClient(o.t, o.nodes[1].address).do("PUT", "/_replicator/job", "application/json", in)
		return err == nil && (status == 201 || status == 202)
	})
}

// runs waits until one node other than some one runs the replication, and
// everything is copied, and returns the node.
func (o *town) runs(not string) int {
	o.t.Helper()
	at := ""
	wait(o.t, 4*patience, "one node replicates everything", func() bool {
		at = ""
		for _, p := range o.nodes {
			var jobs struct {
				Jobs []struct {
					Node string `json:"node"`
				} `json:"jobs"`
			}
			c := newClient(o.t, p.address)
			c.http.Timeout = time.Second
			if status, err := c.call("GET", "/_scheduler/jobs", nil, &jobs); err != nil || status != 200 {
				continue // it is dead, or suspended
			}
			if len(jobs.Jobs) != 1 || jobs.Jobs[0].Node == not || at != "" && at != jobs.Jobs[0].Node {
				return false
			}
			at = jobs.Jobs[0].Node
		}
		diff, err := differences(o.client(0), "source", o.client(0), "target")
		return at != "" && err == nil && diff == ""
	})
	o.history()
	return int(at[len("node")] - '1')
}

// history looks at the checkpoints.
func (o *town) history() {
	o.t.Helper()
	var locals struct {
		Rows []struct {
			Doc outcome `json:"doc"`
		} `json:"rows"`
	}
	if status, err := o.client(0).call("GET", "/target/_local_docs?include_docs=true", nil, &locals); err != nil || status != 200 {
		o.t.Fatal(status, err)
	}
	if len(locals.Rows) != 1 {
		o.t.Fatalf("%d checkpoints", len(locals.Rows))
	}
	o.sessions(locals.Rows[0].Doc.History, len(locals.Rows[0].Doc.History))
}

// killed kills a node and starts it again when another one replicates.
func (o *town) killed(node int) {
	o.t.Helper()
	began := time.Now()
	o.nodes[node].kill()
	<-o.nodes[node].ended
	o.more(300)
	next := o.runs(fmt.Sprintf("node%d@127.0.0.1", node+1))
	o.t.Logf("node %d was killed, after %v node %d has copied everything", node, time.Since(began), next)
	o.begin(node, o.nodes[node].address)
}

// suspended suspends a node and lets it go on when another one replicates.
func (o *town) suspended(node int) {
	o.t.Helper()
	began := time.Now()
	if err := o.nodes[node].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		o.t.Fatal(err)
	}
	o.more(300)
	next := o.runs(fmt.Sprintf("node%d@127.0.0.1", node+1))
	o.t.Logf("node %d was suspended, after %v node %d has copied everything", node, time.Since(began), next)
	o.more(100)
	if err := o.nodes[node].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		o.t.Fatal(err)
	}
}
