package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

const (
	user     = "adm"
	password = "pass"
	patience = 60 * time.Second // until a process answers
)

// process is a program at work.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// kill ends it at once and waits for the end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.ended
}

// launch starts a server with its data in a directory; its output goes to a
// file beside it.
func (w *world) launch(ctx context.Context, dir, name string, args ...string) (*process, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	out, err := os.OpenFile(dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the program has its own handle
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(ctx), name, args...)}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), "DIVAN_CHTTPD_AUTH__ITERATIONS=10")
	p.cmd.Stdout, p.cmd.Stderr = out, out
	return p, w.run(p)
}

// run starts a process, which ends when main does at the latest.
func (w *world) run(p *process) error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.ended = make(chan struct{})
	go func() {
		_ = p.cmd.Wait() // killed in the end
		close(p.ended)
	}()
	w.processes = append(w.processes, p)
	return nil
}

// divan starts a server of this project.
func (w *world) divan(ctx context.Context, dir string) (*server, error) {
	port, err := freePort(ctx)
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
	port, err := freePort(ctx)
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
	*process
	in  io.WriteCloser
	out *bufio.Reader
}

// live starts live.js.
func (w *world) live(ctx context.Context, url, dir string) (*live, error) {
	l := &live{process: &process{}}
	l.cmd = exec.CommandContext(context.WithoutCancel(ctx), "node", filepath.Join(w.modules, "live.js"), url, dir)
	l.cmd.Dir, l.cmd.Stderr = w.modules, os.Stderr
	var err error
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	l.out = bufio.NewReader(out)
	return l, w.run(l.process)
}

// say sends a line and returns the answer.
func (l *live) say(line string) (string, error) {
	if _, err := fmt.Fprintln(l.in, line); err != nil {
		return "", err
	}
	return l.out.ReadString('\n')
}

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("no TCP address")
	}
	return addr.Port, l.Close()
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
		case <-s.process.ended:
			return fmt.Errorf("%s has ended", s.name)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
