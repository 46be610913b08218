package main

import (
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
	account  = "adm:pass"
	patience = 60 * time.Second // until the server answers
)

// server is the server that the clients are tried on.
type server struct {
	host    string // HOST:PORT
	process *child.Process
}

func (s *server) url() string { return "http://" + account + "@" + s.host }

// start starts it with an empty data directory and waits until it answers.
func start(ctx context.Context, c config) (*server, error) {
	data := filepath.Join(c.dir, "data")
	if err := os.RemoveAll(data); err != nil {
		return nil, err
	}
	port, err := porttest.Free(ctx)
	if err != nil {
		return nil, err
	}
	s := &server{host: "127.0.0.1:" + strconv.Itoa(port)}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), c.binary, "serve", "--data", data, "--listen", s.host, "--admin", account)
	cmd.Env = append(os.Environ(), "DIVAN_CHTTPD_AUTH__ITERATIONS=10")
	if s.process, err = child.Start(cmd, filepath.Join(c.dir, "divan.log")); err != nil {
		return nil, err
	}
	late, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if _, err := s.get(late, "/_up"); err == nil {
			return s, nil
		}
		select {
		case <-late.Done():
			s.process.Kill()
			return nil, fmt.Errorf("the server does not answer: %w", late.Err())
		case <-s.process.Ended():
			return nil, fmt.Errorf("the server has ended, see %s", filepath.Join(c.dir, "divan.log"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// get asks the server.
func (s *server) get(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // it was read
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	return text, err
}
