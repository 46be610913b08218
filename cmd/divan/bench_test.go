package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"divan/cmd/divan/bench"
)

// TestBenchRefusals looks for one line that says what is wrong with the options.
func TestBenchRefusals(t *testing.T) {
	const (
		server    = "http://127.0.0.1:1"
		notServer = "--against: the URL of a server is expected, without a path: http://admin:password@127.0.0.1:5984"
		noAgainst = " needs the URL of the server to compare with: --against http://admin:password@127.0.0.1:6984"
		onePID    = "the processor time of both servers is compared or that of none: --pid needs --against-pid, and that one needs --pid"
	)
	for options, want := range map[string]string{
		"--against http://adm:p/w@127.0.0.1:5984/pond": notServer,
		"--against=":                               notServer,
		"--against-pid 1":                          "--against-pid" + noAgainst,
		"--rounds 3":                               "--rounds" + noAgainst,
		"--against " + server + " --rounds 0":      "a comparison needs one round at least (--rounds), not 0",
		"--against " + server + " --against-pid 1": onePID,
		"--against " + server + " --pid 1":         onePID,
		"--against ftp://127.0.0.1:1 --only dance": `unknown workload: "dance" (there are ` + strings.Join(bench.Names(), ", ") + ")",
	} {
		t.Run(options, func(t *testing.T) {
			status, out := run(t, nil, append(append([]string{"bench"}, strings.Fields(options)...), server)...)
			if status != 1 || out != "divan: "+want+"\n" {
				t.Errorf("exit status %d, %s", status, out)
			}
		})
	}
}

// TestBenchComparesWithHandler has the program start itself as the handler that a server is compared with.
func TestBenchComparesWithHandler(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processor time is read on Linux only")
	}
	p := startServer(t, adminEnviron(), "--data", t.TempDir())
	status, out := run(t, nil, "bench", "--pid", fmt.Sprint(p.cmd.Process.Pid), "--clients", "4", "--duration", "300ms", "--only", "put,update_hot",
		"--json", "http://adm:pass@"+p.address)
	var report bench.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 0 || len(report.Results) != 2 {
		t.Fatalf("exit status %d, %v: %s", status, err, out)
	}
	for _, r := range report.Results {
		if r.ServerCPU <= 0 || r.HandlerCPU <= 0 || r.Handlers <= 0 || r.Count == 0 || r.Errors > 0 {
			t.Errorf("%+v", r)
		}
	}
}

// TestBenchCompares has two nodes compared, in all rounds, and leaves nothing behind.
func TestBenchCompares(t *testing.T) {
	first, second := startServer(t, adminEnviron(), "--data", t.TempDir()), startServer(t, adminEnviron(), "--data", t.TempDir())
	args := strings.Fields("bench --clients 4 --duration 50ms --only put,update_hot --rounds 2 --json --against")
	args = append(args, "http://adm:pass@"+second.address, "http://adm:pass@"+first.address)
	var pids []string
	if runtime.GOOS == "linux" {
		pids = []string{"--pid", fmt.Sprint(first.cmd.Process.Pid), "--against-pid", fmt.Sprint(second.cmd.Process.Pid)}
	}
	status, out := run(t, nil, append(args, pids...)...)
	var report bench.Comparison
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 0 || len(report.Workloads) != 2 {
		t.Fatalf("exit status %d, %v: %s", status, err, out)
	}
	if got := [2]string{report.Servers[0].Address, report.Servers[1].Address}; got != [2]string{first.address, second.address} {
		t.Errorf("the servers are %s", got)
	}
	for _, w := range report.Workloads {
		if w.Rounds != 2 || w.PerSecond.Rounds != 2 || w.Servers[0].Errors+w.Servers[1].Errors > 0 {
			t.Errorf("%+v", w)
		}
	}
	for _, p := range []*process{first, second} {
		if dbs := newClient(t, p.address).want(t, "GET", "/_all_dbs", "", 200); strings.Contains(dbs, "bench_") {
			t.Errorf("left behind: %s", dbs)
		}
	}
	second.stop()
	if status, out := run(t, nil, args...); status != 1 || !strings.Contains(out, "divan: the second server: the server does not answer") {
		t.Errorf("exit status %d, %s", status, out)
	}
}
