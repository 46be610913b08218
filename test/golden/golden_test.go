package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"divan/cmd/divan/node"
	"divan/storage/storagetest"
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
	used   atomic.Bool
}

// threeNodes stands in front of an exception that holds only where the node
// belongs to a cluster.
const threeNodes = "three nodes: "

// byTest stands in front of an exception that no transcript shows: "DIR NAME: what" names
// the test that holds it.
const byTest = "\ttest "

// readExceptions returns the list of testdata/exceptions.txt by "file: title".
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
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"), strings.HasPrefix(line, byTest):
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

// TestExceptionsHaveTests looks for the tests that the list of exceptions names.
func TestExceptionsHaveTests(t *testing.T) {
	text, err := os.ReadFile("testdata/exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, byTest)
		if !ok {
			continue
		}
		named++
		where, _, _ := strings.Cut(rest, ":")
		dir, name, _ := strings.Cut(where, " ")
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			code, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(code), "\nfunc "+name+"(t *testing.T) {")
		}) {
			t.Errorf("exceptions.txt: there is no test %q in %q", name, dir)
		}
	}
	if named == 0 {
		t.Error("exceptions.txt names no test")
	}
}

// startNode runs a node in this process, with settings, and returns its URL with the
// administrator.
func startNode(t *testing.T, settings ...string) *url.URL {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.New(t.Context(), node.Config{
		DataDir: t.TempDir(), Listener: listener, Admin: "adm:pass", Version: "test", Logger: storagetest.FailOnPanics(t),
		Environ: append([]string{shortFeeds, slowFunctions}, settings...), // nodes that start side by side share settings
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

// transcripts returns the files by their names below testdata.
func transcripts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.http")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d transcripts found: %v", len(files), err)
	}
	out := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		key, err := filepath.Rel("testdata", name)
		if err != nil {
			t.Fatal(err)
		}
		out[key] = string(text)
	}
	return out
}

// TestGolden replays the transcripts, first against a node that stands alone, then against a node
// of three, and those of full-text search while one of three is down. Files whose steps change
// settings that hold for the whole node have a node, or a cluster, of their own; the others share
// one and run side by side.
func TestGolden(t *testing.T) {
	exceptions := readExceptions(t)
	files := transcripts(t)
	t.Run("one", func(t *testing.T) { replayAlone(t, files, exceptions) })
	if testing.Short() {
		return
	}
	t.Run("three", func(t *testing.T) { replayInCluster(t, files, exceptions) })
	t.Run("two of three", func(t *testing.T) { replayWithOneDown(t, files, exceptions) })
	if t.Failed() {
		return
	}
	for key, e := range exceptions {
		if !e.used.Load() {
			t.Errorf("exceptions.txt: %q passes now, or there is no such step: take it out (%s)", key, e.reason)
		}
	}
}

// outOfReach reports whether a step got an answer that it did not want and that a cluster
// gives only while its nodes cannot reach each other, as on a machine whose processors
// are taken for seconds: 202 and 503.
func outOfReach(reports []report) bool {
	return slices.ContainsFunc(reports, func(r report) bool {
		return slices.ContainsFunc(r.diffs, func(d string) bool {
			return strings.HasPrefix(d, "status: want ") && (strings.HasSuffix(d, ", got 202") || strings.HasSuffix(d, ", got 503"))
		})
	})
}

// late reports whether a step differs in a transcript that does something while a feed
// waits for it, or reads an index before it is updated: on a machine whose processors are
// taken the feed may end before, and the index be updated.
func late(f transcript, reports []report) bool {
	return (strings.Contains(f.text, "\n# @during ") || strings.Contains(f.text, "update=false")) && slices.ContainsFunc(reports, func(r report) bool { return len(r.diffs) > 0 && !f.known(r.title) })
}

// named is a subtest of a file; the subtest that holds all of them waits.
func named(t *testing.T, files map[string]string, skip func(key string) bool, replay func(t *testing.T, key string)) {
	t.Helper()
	t.Run("files", func(t *testing.T) {
		for key := range files {
			if !skip(key) {
				t.Run(strings.TrimSuffix(key, ".http"), func(t *testing.T) {
					t.Parallel()
					replay(t, key)
				})
			}
		}
	})
}

// defaultIterations are in a transcript that shows how many rounds a hash has by default.
const defaultIterations = "\n600000\n"

// fastHashes is for all other transcripts: hashes were two thirds of the processor time of
// these tests.
const fastHashes = "DIVAN_CHTTPD_AUTH__ITERATIONS=10000"

func replayAlone(t *testing.T, files map[string]string, exceptions map[string]*exception) {
	t.Helper()
	shared := startNode(t, fastHashes)
	named(t, files, ofClusters, func(t *testing.T, key string) {
		t.Helper()
		f := transcript{name: key, text: files[key], base: shared, again: true}
		switch {
		case strings.Contains(f.text, defaultIterations):
			f.base = startNode(t)
		case changesSettings(f.text) || ofResharding(key):
			f.base, f.again = startNode(t, fastHashes), false
		}
		replayFile(t, f, func(title string) *exception { return exceptions[key+": "+title] })
	})
}

// replayWithOneDown replays the transcripts of full-text search against a cluster of three
// of whose nodes one is stopped.
func replayWithOneDown(t *testing.T, files map[string]string, exceptions map[string]*exception) {
	t.Helper()
	c := startCluster(t, fastHashes)
	c.stop(c.nodes[2])
	c.await(2)
	guests := make(chan struct{}, maxGuests)
	named(t, files, func(key string) bool { return !ofSearch(key) || changesSettings(files[key]) }, func(t *testing.T, key string) {
		t.Helper()
		guests <- struct{}{}
		defer func() { <-guests }()
		f := transcript{name: key, text: files[key], base: c.nodes[0].url, copies: true, again: true, nodes: []*url.URL{c.nodes[0].url, c.nodes[1].url}}
		replayFile(t, f, func(title string) *exception {
			if e := exceptions[key+": "+title]; e != nil {
				return e
			}
			return exceptions[threeNodes+key+": "+title]
		})
	})
}

func replayInCluster(t *testing.T, files map[string]string, exceptions map[string]*exception) {
	t.Helper()
	all := newClusters(t)
	named(t, files, ofOneNode, func(t *testing.T, key string) {
		t.Helper()
		c, done := all.get(t, files[key])
		t.Cleanup(done)
		f := transcript{name: key, text: files[key], base: c.nodes[0].url, copies: !ofClusters(key), again: c == all.shared}
		for _, node := range c.nodes {
			f.nodes = append(f.nodes, node.url)
		}
		if down := stoppedNodes(f.text); down != nil {
			f.before = func(db string) error { return c.lose(down, db) }
		}
		replayFile(t, f, func(title string) *exception {
			if e := exceptions[key+": "+title]; e != nil {
				return e
			}
			return exceptions[threeNodes+key+": "+title]
		})
	})
}

func replayFile(t *testing.T, f transcript, excuse func(title string) *exception) {
	t.Helper()
	passed, excused := 0, 0
	f.known = func(title string) bool { return excuse(title) != nil }
	reports := replay(t.Context(), f)
	for again := 2; again > 0 && f.again && (outOfReach(reports) || late(f, reports)); again-- {
		t.Logf("%s: once more", f.name)
		reports = replay(t.Context(), f)
	}
	for _, r := range reports {
		e := excuse(r.title)
		switch {
		case len(r.diffs) == 0:
			passed++
		case e != nil:
			e.used.Store(true)
			excused++
		default:
			t.Errorf("%s\n    %s %s\n    %s", r.title, r.method, r.path, strings.Join(r.diffs[:min(len(r.diffs), 12)], "\n    "))
		}
	}
	t.Logf("%s: %d steps as CouchDB, %d excused", f.name, passed, excused)
}

func TestOutOfReach(t *testing.T) {
	for text, want := range map[string]bool{
		"status: want 201, got 202":      true,
		"status: want 200, got 503":      true,
		"status: want 200, got 500":      false,
		"status: want 202, got 201":      false,
		".error: want \"x\", got 202":    false,
		"status: want an error, got 202": true,
	} {
		if got := outOfReach([]report{{}, {diffs: []string{"other", text}}}); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
