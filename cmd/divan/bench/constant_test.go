package bench

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

func TestConstantHandler(t *testing.T) {
	server := httptest.NewServer(constantHandler(700))
	defer server.Close()
	for method, want := range map[string]struct{ status, size int }{"GET": {200, 700}, "PUT": {201, 95}, "POST": {201, 95}} {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/db/doc?r=1", strings.NewReader(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want.status || len(body) != want.size || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d, %d bytes, %v: %v", method, resp.StatusCode, len(body), resp.Header, err)
		}
	}
}

// TestServeConstantEnds has it end with its input, and with its context.
func TestServeConstantEnds(t *testing.T) {
	for name, end := range map[string]func(input io.Closer, cancel func()){
		"input": func(input io.Closer, _ func()) { _ = input.Close() }, "context": func(_ io.Closer, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			input, hold := io.Pipe()
			defer func() { _ = hold.Close() }() // who waits for its end ends
			output, print := io.Pipe()
			served := make(chan error, 1)
			go func() { served <- ServeConstant(ctx, input, print, 100) }()
			address, err := bufio.NewReader(output).ReadString('\n')
			if err != nil || !strings.HasPrefix(address, "127.0.0.1:") {
				t.Fatalf("address %q: %v", address, err)
			}
			end(hold, cancel)
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConstantTime(t *testing.T) {
	for duration, want := range map[time.Duration]time.Duration{0: 500 * time.Millisecond, 2 * time.Second: 500 * time.Millisecond, 10 * time.Second: 2500 * time.Millisecond} {
		if got := constantTime(duration); got != want {
			t.Errorf("%v for %v", got, duration)
		}
	}
}

// TestHandlers has workloads compared with the constant handler, a process of its own, which ends with the run.
// It gets requests that are none of the server's.
func TestHandlers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processor time is read on Linux only")
	}
	t.Setenv(asConstant, "1")
	server := &couch{revs: map[string]string{}}
	report, err := runOn(t, server, Config{
		Clients: 4, Duration: 300 * time.Millisecond, Docs: 100, Batch: 50, PIDs: []int{os.Getpid()}, Constant: []string{os.Args[0]}, Keep: true,
		Only: []string{"put", "update", "bulk", "find"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if compared := r.Name != "bulk"; (r.HandlerCPU > 0) != compared || (r.Handlers > 0) != compared || r.Errors > 0 {
			t.Errorf("%+v", r)
		}
		if r.HandlerCPU > 0 && r.Handlers != r.ServerCPU/r.HandlerCPU {
			t.Errorf("%+v", r)
		}
	}
	if want := report.Results[0].Count + 400 + report.Results[1].Count; server.puts != want {
		t.Errorf("%d documents were written, of which %d are known", server.puts, want)
	}
	var out strings.Builder
	if err := report.Print(&out); err != nil || !strings.Contains(out.String(), "handler cpu ms handlers\n") || strings.Count(out.String(), "- ") == 0 {
		t.Errorf("error %v, report %s", err, &out)
	}
}

// TestConstantProcess: it is there when it was started, and gone when it was stopped.
func TestConstantProcess(t *testing.T) {
	t.Setenv(asConstant, "1")
	c, err := startConstant(t.Context(), Config{Constant: []string{os.Args[0]}, Clients: 1, DocSize: 300})
	if err != nil {
		t.Fatal(err)
	}
	status, body, err := c.client.Get(nil, "http://"+c.client.Addr+"/x")
	c.stop()
	if err != nil || status != http.StatusOK || len(body) != 300 {
		t.Errorf("status %d, %d bytes: %v", status, len(body), err)
	}
	if _, err := procfs.NewProc(c.pid); runtime.GOOS == "linux" && err == nil {
		t.Error("it runs on")
	}
}

func TestNoConstantProcess(t *testing.T) {
	for _, command := range [][]string{{"/none"}, {"false"}} {
		_, err := startConstant(t.Context(), Config{Constant: command})
		if err == nil || !strings.HasPrefix(err.Error(), "start the constant handler: ") {
			t.Errorf("%s: %v", command, err)
		}
	}
}
