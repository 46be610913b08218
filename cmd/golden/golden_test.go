package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"divan/cmd/divan/node"
)

// TestMain lets many transcripts run side by side: most of their time they wait
// for a feed to end.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "24"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// exception is a step that may differ from CouchDB.
type exception struct {
	reason string
	used   bool
}

// readExceptions returns the list of testdata/exceptions.txt by "file: title".
// A title of "*" excuses every step of its file.
func readExceptions(t *testing.T) map[string]*exception {
	t.Helper()
	text, err := os.ReadFile("testdata/exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*exception{}
	reason := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			if reason == "" {
				t.Fatalf("exceptions.txt: a step without a reason: %s", line)
			}
			out[strings.TrimSpace(line)] = &exception{reason: reason}
		default:
			reason = strings.TrimSuffix(strings.TrimSpace(line), ":")
		}
	}
	return out
}

// startNode runs a node in this process and returns its URL with the
// administrator.
func startNode(t *testing.T) *url.URL {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.New(t.Context(), node.Config{
		DataDir: t.TempDir(), Listener: listener, Admin: "adm:pass", Version: "test", Logger: zap.NewNop(),
		// _db_updates takes its timeout for seconds (api.md section 20, row 5), the transcripts give milliseconds.
		Environ: []string{"DIVAN_CHTTPD__CHANGES_TIMEOUT=5000"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the node stopped with: %v", err)
		}
	})
	select {
	case <-n.Ready():
	case err := <-done:
		t.Fatalf("the node did not start: %v", err)
	}
	return &url.URL{Scheme: "http", Host: listener.Addr().String(), User: url.UserPassword("adm", "pass")}
}

// TestGolden replays the transcripts. Files whose steps change settings that
// hold for the whole node have a node of their own; the others share one and
// run side by side.
func TestGolden(t *testing.T) {
	exceptions := readExceptions(t)
	files, err := filepath.Glob("testdata/*/*.http")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d transcripts found: %v", len(files), err)
	}
	t.Run("files", func(t *testing.T) {
		shared := startNode(t)
		t.Run("shared", func(t *testing.T) {
			for _, name := range files {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				key, err := filepath.Rel("testdata", name)
				if err != nil {
					t.Fatal(err)
				}
				t.Run(strings.TrimSuffix(key, ".http"), func(t *testing.T) {
					t.Parallel()
					base := shared
					if strings.Contains(string(text), "/_config/") || strings.Contains(string(text), "/_cluster_setup") ||
						strings.Contains(string(text), "/_db_updates") { // it sees what others do
						base = startNode(t)
					}
					replayFile(t, base, key, string(text), exceptions)
				})
			}
		})
	})
	if t.Failed() {
		return
	}
	for key, e := range exceptions {
		if !e.used {
			t.Errorf("exceptions.txt: %q passes now, or there is no such step: take it out (%s)", key, e.reason)
		}
	}
}

func replayFile(t *testing.T, base *url.URL, key, text string, exceptions map[string]*exception) {
	t.Helper()
	passed, excused := 0, 0
	for _, r := range replay(t.Context(), base, text) {
		e := exceptions[key+": "+r.title]
		switch {
		case len(r.diffs) == 0:
			passed++
		case e != nil:
			e.used = true
			excused++
		default:
			t.Errorf("%s\n    %s %s\n    %s", r.title, r.method, r.path, strings.Join(r.diffs[:min(len(r.diffs), 12)], "\n    "))
		}
	}
	t.Logf("%d steps as CouchDB, %d excused", passed, excused)
}
