package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// smallDatabases is how many databases with a document each the cases here have.
const smallDatabases = 40

// makeSmall makes them.
func (s *server) makeSmall(ctx context.Context, n string) error {
	for i := range smallDatabases {
		if err := s.must(ctx, http.MethodPut, fmt.Sprintf("/small%d?q=1&n=%s", i, n), nil); err != nil {
			return err
		}
		if err := s.must(ctx, http.MethodPut, fmt.Sprintf("/small%d/doc", i), struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// askSmall reads each of their documents.
func (s *server) askSmall(ctx context.Context) *statuses {
	answers := &statuses{}
	for i := range smallDatabases {
		status, _ := s.call(ctx, http.MethodGet, fmt.Sprintf("/small%d/doc", i), nil, nil) // 0 counts
		answers.add(status)
	}
	return answers
}

// ticks is the processor time that the process has taken, in hundredths of a second.
func (s *server) ticks() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.PID()))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, errors.New("malformed stat")
	}
	a, errA := strconv.Atoi(fields[user])
	b, errB := strconv.Atoi(fields[system])
	return a + b, errors.Join(errA, errB)
}

// bitFlipped flips a bit of what names the blocks of a table of small shards.
func bitFlipped(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err == nil {
		err = s.makeSmall(ctx, "1")
	}
	if err == nil {
		err = s.stop()
	}
	if err == nil {
		err = s.start(ctx) // has the log written into a table
	}
	if err == nil {
		_ = s.askSmall(ctx)
		err = s.stop()
	}
	if err != nil {
		return "", err
	}
	name, err := find(filepath.Join(s.dir, "small-shards"), func(name string) bool { return strings.HasSuffix(name, ".sst") })
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	const behind = 80 // bytes before the end: the footer has 61, the block before it ends with its checksum
	at := len(text) - behind
	if err := overwrite(name, func(int64) int64 { return int64(at) }, []byte{text[at] ^ 4}); err != nil {
		return "", err
	}
	if err := s.start(ctx); err != nil {
		return "", err
	}
	rest(ctx, 2*time.Second)
	ticks, _ := s.ticks()
	before, err := os.ReadFile(s.dir + ".log")
	if err != nil {
		return "", err
	}
	const idle = 5
	rest(ctx, idle*time.Second)
	later, _ := s.ticks()
	after, err := os.ReadFile(s.dir + ".log")
	if err != nil {
		return "", err
	}
	answers := s.askSmall(ctx)
	seen := fmt.Sprintf("answers %s, an idle node takes %d %% of a processor and logs %d bytes a second", answers.String(), (later-ticks)/idle, (len(after)-len(before))/idle)
	if answers.n[http.StatusOK] != smallDatabases || later-ticks > 20*idle || len(after)-len(before) > 10_000 {
		return seen, errors.New("a bit is not set right")
	}
	return seen, nil
}

// logGone removes a log that has the only edits of a database.
func logGone(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err == nil {
		err = s.must(ctx, http.MethodPut, "/logged?q=1", nil)
	}
	for i := 0; err == nil && i < 50; i++ {
		err = s.must(ctx, http.MethodPut, fmt.Sprintf("/logged/d%d", i), map[string]string{"text": strings.Repeat("x", 1000)})
	}
	if err != nil {
		return "", err
	}
	s.process.Kill()
	name, err := find(filepath.Join(s.dir, "shards"), func(name string) bool { return strings.Contains(name, "/logged.") && strings.HasSuffix(name, ".log") })
	if err == nil {
		err = os.Rename(name, s.dir+".away")
	}
	if err != nil {
		return "", err
	}
	if said, err := s.command(ctx, "check", s.dir); err == nil || !strings.Contains(said, filepath.Base(name)) {
		return said, errors.New("check does not name the log")
	}
	if err := s.start(ctx); err != nil {
		return "", err
	}
	if status, _ := s.call(ctx, http.MethodGet, "/logged/d49", nil, nil); status != http.StatusServiceUnavailable {
		return "", fmt.Errorf("a document whose log is gone is answered %d", status)
	}
	text, err := os.ReadFile(s.dir + ".log")
	if err != nil || !bytes.Contains(text, []byte(filepath.Base(name))) {
		return "", errors.Join(err, errors.New("the server does not name the log"))
	}
	if err := s.stop(); err != nil {
		return "", err
	}
	if err := os.Rename(s.dir+".away", name); err != nil {
		return "", err
	}
	if err := s.start(ctx); err != nil {
		return "", err
	}
	return "refused and named; all is there with the log", s.must(ctx, http.MethodGet, "/logged/d49", nil)
}

// smallGone removes the files of small shards on one of three nodes.
func smallGone(ctx context.Context, w *world) (string, error) {
	if _, err := w.cluster(ctx, 3); err != nil {
		return "", err
	}
	s := w.servers[2]
	if err := s.members(ctx, 3); err != nil {
		return "", err
	}
	if err := s.makeSmall(ctx, "3"); err != nil {
		return "", err
	}
	if err := s.stop(); err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "small-shards")); err != nil {
		return "", err
	}
	if err := s.start(ctx); err != nil {
		return "", err
	}
	begun := time.Now()
	for {
		var shards struct{ Lost, Joining []string }
		status, err := s.call(ctx, http.MethodGet, "/_node/_local/_lost_shards", nil, &shards)
		text, _ := os.ReadFile(s.dir + ".log") // what it says counts
		joins := bytes.Count(text, []byte("copy is missing, it joins"))
		if err == nil && status == http.StatusOK && len(shards.Lost)+len(shards.Joining) == 0 && joins >= smallDatabases {
			return fmt.Sprintf("%d copies were filled after %v", joins, time.Since(begun).Round(time.Second)), nil
		}
		if time.Since(begun) > 2*patience {
			return "", fmt.Errorf("after %v %d copies joined, %d still do", time.Since(begun).Round(time.Second), joins, len(shards.Joining))
		}
		if !rest(ctx, 500*time.Millisecond) {
			return "", ctx.Err()
		}
	}
}
