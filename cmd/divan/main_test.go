package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asProgram makes the test binary be the program: the tests start it as a
// process of its own, with the race detector when they have it.
const asProgram = "TEST_AS_DIVAN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		limitSelf()
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// adminEnviron are settings of most nodes here: an administrator whose
// password costs little to check.
func adminEnviron() []string {
	return []string{"COUCHDB_USER=adm", "COUCHDB_PASSWORD=pass", "DIVAN_CHTTPD_AUTH__ITERATIONS=1"}
}

// process is the program at work.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string        // HOST:PORT of a server, once it answers
	ready   chan struct{} // closed when it answers
	ended   chan struct{} // closed when it is gone
	err     error         // of Wait, once ended is closed

	mu  sync.Mutex
	out bytes.Buffer // what it has printed, log included
}

// launch starts the program and does not wait for anything.
func launch(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, ready: make(chan struct{}), ended: make(chan struct{})}
	p.cmd = exec.CommandContext(context.Background(), os.Args[0], args...)
	p.cmd.Env = append([]string{asProgram + "=1", "PATH=" + os.Getenv("PATH")}, environ...)
	read, write := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = write, write
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { p.listen(read) })
	go func() {
		p.err = p.cmd.Wait()
		_ = write.Close() // never fails
		reading.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		<-p.ended
	})
	return p
}

// listen collects the output and waits for the line that tells the address.
func (p *process) listen(r io.Reader) {
	for in := bufio.NewReader(r); ; {
		line, err := in.ReadString('\n')
		p.mu.Lock()
		p.out.WriteString(line)
		p.mu.Unlock()
		if address, ok := strings.CutPrefix(line, "Divan answers on http://"); ok {
			select {
			case <-p.ready: // it has restarted
			default:
				p.address = strings.TrimSpace(address)
				close(p.ready)
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// kill ends the process as a power cut of the program would.
func (p *process) kill() { _ = p.cmd.Process.Kill() } // it may be gone already

// serve starts a server on a free port and waits until it answers.
func startServer(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	p := launch(t, environ, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	p.awaitReady()
	return p
}

func (p *process) awaitReady() {
	p.t.Helper()
	select {
	case <-p.ready:
	case <-p.ended:
		p.t.Fatalf("the program ended: %v\n%s", p.err, p.output())
	case <-time.After(patience):
		p.t.Fatalf("the program does not answer in time\n%s", p.output())
	}
}

// wait waits for the end and returns the exit status, -1 for a signal.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("the program does not end in time\n%s", p.output())
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		p.t.Fatal(p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop asks for a graceful stop, which must succeed.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if status := p.wait(); status != 0 {
		p.t.Errorf("exit status %d after SIGTERM\n%s", status, p.output())
	}
}

// run runs the program to its end and returns its exit status and output.
func run(t *testing.T, environ []string, args ...string) (status int, output string) {
	t.Helper()
	p := launch(t, environ, args...)
	status = p.wait()
	return status, p.output()
}

// client asks one server.
type client struct {
	http *http.Client
	base string
}

func newClient(t *testing.T, address string) *client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{&http.Client{Transport: transport, Timeout: patience}, "http://adm:pass@" + address}
}

// do sends a request and returns status and body.
func (c *client) do(method, path, contentType string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(context.Background(), method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", contentType)
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// call sends JSON and decodes the answer into out, unless that is nil.
func (c *client) call(method, path string, in, out any) (status int, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return 0, err
		}
	}
	status, answer, err := c.do(method, path, "application/json", body)
	if err == nil && out != nil && status < 400 {
		err = json.Unmarshal(answer, out)
	}
	return status, err
}

// want sends a request that must be answered with that status.
func (c *client) want(t *testing.T, method, path, body string, status int) string {
	t.Helper()
	got, answer, err := c.do(method, path, "application/json", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if got != status {
		t.Errorf("%s %s: %d %s, want %d", method, path, got, answer, status)
	}
	return strings.TrimSpace(string(answer))
}

// eventually waits until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	wait(t, patience, what, ok)
}

// wait is eventually for what takes longer.
func wait(t *testing.T, most time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(most)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("in vain waited until %s", what)
		}
		<-tick.C
	}
}
