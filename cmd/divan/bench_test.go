package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"divan/cmd/divan/bench"
)

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
