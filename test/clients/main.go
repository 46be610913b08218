// Command clients tries real clients of CouchDB out on a server of its own: pouchdb-find,
// PouchDB's map/reduce queries, nano, couchbackup, and promtool, which lints the metrics.
// It needs Node.js, the npm registry and the Go module proxy, and installs them into
// its directory, in fixed versions:
//
//	make clients
//
// Each client prints a line. The first one that is not content ends it with exit
// status 1.
package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"divan/test/child"
)

// programs are the clients in Node.js, and which versions of them.
//
//go:embed package.json *.js
var programs embed.FS

// config holds the values of the flags.
type config struct{ binary, dir, only string }

func main() {
	c := config{}
	flag.StringVar(&c.binary, "program", "bin/divan", "the program")
	flag.StringVar(&c.dir, "dir", "data/clients", "for data, logs and the clients; data are emptied first")
	flag.StringVar(&c.only, "only", "", "run this client alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// client is one of them; run tells what it has seen.
type client struct {
	name string
	run  func(ctx context.Context) (string, error)
}

// run installs the clients, starts the server and lets them at it.
func run(ctx context.Context, c config) (err error) {
	for _, path := range []*string{&c.binary, &c.dir} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	modules := filepath.Join(c.dir, "npm")
	if err := child.InstallNode(ctx, modules, programs); err != nil {
		return err
	}
	s, err := start(ctx, c)
	if err != nil {
		return err
	}
	defer s.process.Kill()
	node := func(name string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			return output(ctx, modules, "node", "run.js", name, s.url())
		}
	}
	for _, client := range []client{
		{"pouchdb-find", node("find")},
		{"pouchdb map/reduce", node("queries")},
		{"nano", node("nano")},
		{"couchbackup", node("backup")},
		{"promtool", func(ctx context.Context) (string, error) { return s.promtool(ctx, filepath.Join(c.dir, "promtool")) }},
	} {
		if c.only != "" && c.only != client.name {
			continue
		}
		begin := time.Now()
		seen, err := client.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", client.name, err)
		}
		fmt.Printf("%-20s %s, %.1f s\n", client.name, seen, time.Since(begin).Seconds())
	}
	return nil
}

// output runs a program and returns the last line of what it prints. What it says
// besides is shown when it fails.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if err != nil {
		return "", errors.Join(err, errors.New(strings.TrimSpace(string(text)+complaints.String())))
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1], nil
}
