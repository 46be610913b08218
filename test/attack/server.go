package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"divan/cmd/divan/porttest"
	"divan/test/child"
)

const (
	user     = "adm"
	password = "pass word of this run"
	patience = 30 * time.Second // until a process answers, or has ended
)

// world is the servers of one case and the innocent client of the first one.
type world struct {
	config
	data      string
	servers   []*server
	helpers   []*child.Process // that are no servers
	innocent  *innocent
	usual     waits
	meanwhile waits
	watched   bool
	functions bool  // the innocent client has some
	failure   error // of the innocent client, as a program
}

// server is a process of Divan.
type server struct {
	dir, host string
	env       []string
	limit     int      // of descriptors; 0: as it is
	inside    []string // a command that runs it, for instance in another namespace
	binary    string
	client    *http.Client
	process   *child.Process
}

// newServer returns the part of a server that a client needs.
func newServer(host string) *server {
	return &server{
		host: host, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 20 * time.Second},
	}
}

// server makes a server; start starts it.
func (w *world) server(ctx context.Context, env ...string) (*server, error) {
	port, err := porttest.Free(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(w.data, "node"+strconv.Itoa(len(w.servers)+1))
	s := newServer("127.0.0.1:" + strconv.Itoa(port))
	s.dir, s.env, s.binary = dir, env, w.binary
	w.servers = append(w.servers, s)
	return s, os.MkdirAll(dir, 0o700)
}

// started makes a server and starts it.
func (w *world) started(ctx context.Context, env ...string) (*server, error) {
	s, err := w.server(ctx, env...)
	if err != nil {
		return nil, err
	}
	return s, s.start(ctx)
}

// launch starts the program with these arguments, its output goes to the log.
func (s *server) launch(ctx context.Context, args ...string) (*child.Process, error) {
	command := append(append([]string{}, s.inside...), append([]string{s.binary}, args...)...)
	if s.limit > 0 {
		command = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, s.limit), "sh"}, command...)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	return child.Start(cmd, s.dir+".log")
}

// start starts the server and waits until it answers.
func (s *server) start(ctx context.Context) error {
	var err error
	if s.process, err = s.launch(ctx, "serve", "--data", s.dir, "--listen", s.host, "--admin", user+":"+password); err != nil {
		return err
	}
	return s.await(ctx, patience)
}

// await waits until it answers.
func (s *server) await(ctx context.Context, longest time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	for {
		if status, _ := s.call(ctx, http.MethodGet, "/_up", nil, nil); status == http.StatusOK {
			return nil
		}
		select {
		case <-s.process.Ended():
			return fmt.Errorf("the server has ended: %s", s.lastLines())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %s", s.lastLines())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the server in good order.
func (s *server) stop() error {
	s.process.Signal(syscall.SIGTERM)
	select {
	case <-s.process.Ended():
		return s.process.Wait()
	case <-time.After(patience):
		s.process.Kill()
		return errors.New("the server did not end")
	}
}

// command runs another command of the program to its end and returns what it
// printed.
func (s *server) command(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := append(append([]string{}, s.inside...), append([]string{s.binary}, args...)...)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// refusesToStart starts a server that must not run, and returns its last words.
func (s *server) refusesToStart(ctx context.Context) (string, error) {
	p, err := s.launch(ctx, "serve", "--data", s.dir, "--listen", s.host, "--admin", user+":"+password)
	if err != nil {
		return "", err
	}
	select {
	case <-p.Ended():
	case <-time.After(patience):
		p.Kill()
		return "", errors.New("it started")
	}
	words := s.lastLines()
	if p.Wait() == nil {
		return words, errors.New("it ended as if all was well")
	}
	if strings.Contains(words, "panic") || strings.Contains(words, "goroutine ") {
		return words, errors.New("it panicked: " + words)
	}
	return words, nil
}

// lastLines is the end of the log.
func (s *server) lastLines() string {
	text, err := os.ReadFile(s.dir + ".log")
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// call sends JSON and decodes the answer into out, unless that is nil, or a *string,
// which gets it as it is. A status
// that is no success is no error; one of 0 says that there was no answer.
func (s *server) call(ctx context.Context, method, path string, in, out any) (status int, err error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.host+path, body)
	if err != nil {
		return 0, err
	}
	r.SetBasicAuth(user, password)
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }() // read to its end
	text, err := io.ReadAll(answer.Body)
	switch out := out.(type) {
	case nil:
	case *string:
		*out = string(text)
	case *rowsOrRefusal:
		if err == nil {
			err = json.Unmarshal(text, out)
		}
	default:
		if err == nil && answer.StatusCode < 300 {
			err = json.Unmarshal(text, out)
		}
	}
	return answer.StatusCode, err
}

// rowsOrRefusal is the content of an answer of any status, for call to decode.
type rowsOrRefusal struct {
	Error, Reason string
	Total         int `json:"total_rows"`
}

// must is call that takes nothing but success.
func (s *server) must(ctx context.Context, method, path string, in any) error {
	status, err := s.call(ctx, method, path, in, nil)
	if err == nil && status >= 300 {
		err = fmt.Errorf("%s %s: status %d", method, path, status)
	}
	return err
}

// memory is the resident memory of the server in MB.
func (s *server) memory() int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.PID()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.Atoi(fields[0])
	return kb >> 10
}

// processor is the processor time that the server has used.
func (s *server) processor() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.PID()))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	inUser, _ := strconv.Atoi(fields[11])
	inSystem, _ := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond // of the kernel's figures
	return time.Duration(inUser+inSystem) * tick
}

// end stops all that runs and looks for what the innocent client has lost.
func (w *world) end(ctx context.Context) error {
	err := w.failure
	if w.innocent != nil {
		err = errors.Join(err, w.innocent.stop())
		if ctx.Err() == nil && err == nil {
			err = w.innocent.check(ctx)
		}
	}
	for _, s := range w.servers {
		if s.process != nil && s.process.Running() {
			err = errors.Join(err, s.stop())
		}
	}
	for _, p := range w.helpers {
		p.Kill()
	}
	if err == nil && w.watched {
		err = w.judge()
	}
	return err
}
