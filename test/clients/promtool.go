package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// prometheus is the module that promtool comes from; 0.305 is version 3.5.
const prometheus = "github.com/prometheus/prometheus"

const prometheusVersion = "v0.305.0"

// promtool has the metrics checked by Prometheus' own tool. That it has an eye for them
// is seen first, by ones that are wrong.
func (s *server) promtool(ctx context.Context, dir string) (string, error) {
	tool, err := buildPromtool(ctx, dir)
	if err != nil {
		return "", err
	}
	if _, err := lint(ctx, tool, []byte("# HELP x_milliseconds x\n# TYPE x_milliseconds counter\nx_milliseconds 1\n")); err == nil {
		return "", errors.New("it is content with metrics that are wrong")
	}
	text, err := s.get(ctx, "/_node/_local/_prometheus")
	if err != nil {
		return "", err
	}
	said, err := lint(ctx, tool, text)
	if err != nil || len(said) > 0 {
		return "", errors.Join(err, errors.New(string(said)))
	}
	return fmt.Sprintf("%d metrics, of which %d are CouchDB's or ours, clean", bytes.Count(text, []byte("# TYPE ")), bytes.Count(text, []byte("# TYPE couchdb_"))), nil
}

// lint runs the tool on metrics and returns what it says.
func lint(ctx context.Context, tool string, metrics []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, tool, "check", "metrics")
	cmd.Stdin = bytes.NewReader(metrics)
	return cmd.CombinedOutput()
}

// buildPromtool builds the tool, unless it is there. It has a module of its own, so
// that what it needs is no business of this one, and leaves out the discovery of
// services in all clouds, which takes longer than everything else.
func buildPromtool(ctx context.Context, dir string) (string, error) {
	tool := filepath.Join(dir, "promtool-"+prometheusVersion)
	if _, err := os.Stat(tool); err == nil {
		return tool, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module promtool\n"), 0o600); err != nil {
		return "", err
	}
	fmt.Fprintln(os.Stderr, "building promtool; the first time takes some minutes")
	for _, args := range [][]string{ // the workspace of this project does not list that module
		{"get", prometheus + "/cmd/promtool@" + prometheusVersion},
		{"build", "-tags", "remove_all_sd", "-o", tool, prometheus + "/cmd/promtool"},
	} {
		if _, err := output(ctx, dir, "env", append([]string{"GOWORK=off", "go"}, args...)...); err != nil {
			return "", fmt.Errorf("go %s: %w", args[0], err)
		}
	}
	return tool, nil
}
