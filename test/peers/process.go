package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"divan/cmd/divan/porttest"
	"divan/test/child"
)

const (
	user     = "adm"
	password = "pass"
	patience = 60 * time.Second // until a process answers
)

// launch starts a server with its data in a directory; its output goes to a
// file beside it.
func (w *world) launch(ctx context.Context, dir, name string, args ...string) (*child.Process, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "DIVAN_CHTTPD_AUTH__ITERATIONS=10")
	return w.run(cmd, dir+".log")
}

// run starts a process, which ends when main does at the latest.
func (w *world) run(cmd *exec.Cmd, output string) (*child.Process, error) {
	p, err := child.Start(cmd, output)
	if err == nil {
		w.processes = append(w.processes, p)
	}
	return p, err
}

// divan starts a server of this project.
func (w *world) divan(ctx context.Context, dir string) (*server, error) {
	port, err := porttest.Free(ctx)
	if err != nil {
		return nil, err
	}
	s := &server{name: filepath.Base(dir), host: "127.0.0.1:" + strconv.Itoa(port), login: true, client: newClient()}
	s.start = func(ctx context.Context) (err error) {
		s.process, err = w.launch(ctx, dir, w.binary, "serve", "--data", dir, "--listen", s.host, "--admin", user+":"+password)
		if err != nil {
			return err
		}
		return s.await(ctx)
	}
	return s, s.start(ctx)
}

// pouchServer starts a pouchdb-server.
func (w *world) pouchServer(ctx context.Context, dir string) (*server, error) {
	port, err := porttest.Free(ctx)
	if err != nil {
		return nil, err
	}
	s := &server{name: "pouchdb-server", host: "127.0.0.1:" + strconv.Itoa(port), client: newClient()}
	s.start = func(ctx context.Context) (err error) {
		s.process, err = w.launch(ctx, dir, filepath.Join(w.modules, "node_modules", ".bin", "pouchdb-server"),
			"--port", strconv.Itoa(port), "--host", "127.0.0.1", "--dir", dir, "--no-stdout-logs")
		if err != nil {
			return err
		}
		return s.await(ctx)
	}
	return s, s.start(ctx)
}

// live is a PouchDB in a process of its own that is kept in sync with a
// database.
type live struct {
	*child.Process
	in  io.WriteCloser
	out *bufio.Reader
}

// live starts live.js.
func (w *world) live(ctx context.Context, url, dir string) (*live, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "node", filepath.Join(w.modules, "live.js"), url, dir)
	cmd.Dir, cmd.Stderr = w.modules, os.Stderr
	l := &live{}
	var err error
	if l.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	l.out = bufio.NewReader(out)
	l.Process, err = w.run(cmd, "")
	return l, err
}

// say sends a line and returns the answer.
func (l *live) say(line string) (string, error) {
	if _, err := fmt.Fprintln(l.in, line); err != nil {
		return "", err
	}
	return l.out.ReadString('\n')
}

// await waits until a server answers.
func (s *server) await(ctx context.Context) error {
	late, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if err := s.call(late, http.MethodGet, "/", nil, nil); err == nil {
			return nil
		}
		select {
		case <-late.Done():
			return fmt.Errorf("%s does not answer", s.name)
		case <-s.process.Ended():
			return fmt.Errorf("%s has ended", s.name)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
