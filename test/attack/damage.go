package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kept has a server with documents of the innocent client, stopped.
func kept(ctx context.Context, w *world) (*server, error) {
	s, err := w.started(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.watch(ctx, s); err != nil {
		return nil, err
	}
	if err := w.innocent.stop(); err != nil {
		return nil, err
	}
	w.watched = false // no client waits while the operator does what follows
	return s, s.stop()
}

func killed(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := s.must(ctx, http.MethodPut, "/kept?q=2", nil); err != nil {
		return "", err
	}
	if w.innocent, err = newInnocent(ctx, s, false); err != nil {
		return "", err
	}
	for range 5 {
		if !rest(ctx, 700*time.Millisecond) {
			return "", ctx.Err()
		}
		s.process.Kill()
		if err := s.start(ctx); err != nil {
			return "", err
		}
	}
	if err := w.innocent.stop(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d documents acknowledged", len(w.innocent.acked)), nil
}

func metadataGone(ctx context.Context, w *world) (string, error) {
	s, err := kept(ctx, w)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "meta")); err != nil {
		return "", err
	}
	return s.recovered(ctx)
}

func metadataDamaged(ctx context.Context, w *world) (string, error) {
	s, err := kept(ctx, w)
	if err != nil {
		return "", err
	}
	name, err := find(filepath.Join(s.dir, "meta"), func(name string) bool { return strings.HasSuffix(name, ".db") })
	if err != nil {
		return "", err
	}
	// The pages of the file that say what is where.
	if err := overwrite(name, func(size int64) int64 { return 16 }, []byte("\xff\xff\xff\xff")); err != nil {
		return "", err
	}
	if err := overwrite(name, func(size int64) int64 { return 4096 + 16 }, []byte("\xff\xff\xff\xff")); err != nil {
		return "", err
	}
	return s.recovered(ctx)
}

// recovered checks that a server with bad metadata does not start, that check says
// so, and that it starts with everything after recover.
func (s *server) recovered(ctx context.Context) (string, error) {
	words, err := s.refusesToStart(ctx)
	if err != nil {
		return words, fmt.Errorf("a start: %w", err)
	}
	if text, err := s.command(ctx, "check", s.dir); err == nil {
		return words, fmt.Errorf("check finds nothing wrong: %s", text)
	}
	if text, err := s.command(ctx, "recover", s.dir); err != nil {
		return words, fmt.Errorf("recover: %s: %w", text, err)
	}
	return "recovered", s.start(ctx)
}

func shardGone(ctx context.Context, w *world) (string, error) {
	s, err := kept(ctx, w)
	if err != nil {
		return "", err
	}
	shard, err := find(filepath.Join(s.dir, "shards"), func(name string) bool { return strings.Contains(name, "/kept.") && strings.Contains(name, "MANIFEST") })
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(shard)
	away := filepath.Join(s.dir, "away")
	if err := os.Rename(dir, away); err != nil {
		return "", err
	}
	if err := s.start(ctx); err != nil {
		return "", err
	}
	var answers statuses
	for _, id := range w.innocent.acked {
		status, _ := s.call(ctx, http.MethodGet, "/kept/"+id, nil, nil)
		answers.add(status)
	}
	if answers.n[http.StatusServiceUnavailable] == 0 || answers.n[http.StatusOK] == 0 || len(answers.n) > 2 {
		return answers.String(), errors.New("the documents of one range are gone and those of the other one are there")
	}
	for i := range 40 { // a validation function may be gone as well, so that no range takes any
		if status, _ := s.call(ctx, http.MethodPut, fmt.Sprintf("/kept/late-%d", i), struct{}{}, nil); status != http.StatusServiceUnavailable && status != http.StatusCreated {
			return answers.String(), fmt.Errorf("a write is answered %d", status)
		}
	}
	// The operator finds the directory again.
	if err := s.stop(); err != nil {
		return answers.String(), err
	}
	_ = os.RemoveAll(dir) // nothing may be there
	if err := os.Rename(away, dir); err != nil {
		return answers.String(), err
	}
	return "answers " + answers.String() + ", and all is there with the directory", s.start(ctx)
}

func logDamaged(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := s.must(ctx, http.MethodPut, "/hurt?q=1", nil); err != nil {
		return "", err
	}
	for i := range 50 {
		if err := s.must(ctx, http.MethodPut, fmt.Sprintf("/hurt/d%d", i), map[string]string{"text": strings.Repeat("x", 1000)}); err != nil {
			return "", err
		}
	}
	s.process.Kill()
	name, err := find(filepath.Join(s.dir, "shards"), func(name string) bool { return strings.Contains(name, "/hurt.") && strings.HasSuffix(name, ".log") })
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	written := int64(len(bytes.TrimRight(text, "\x00"))) // space is set aside behind that
	if err := overwrite(name, func(int64) int64 { return written - 100 }, []byte("what no log has")); err != nil {
		return "", err
	}
	said, _ := s.command(ctx, "check", s.dir) // what it says counts
	if !strings.Contains(said, filepath.Base(name)) {
		return said, errors.New("check does not name the log")
	}
	if err := s.start(ctx); err != nil {
		return "", err
	}
	if _, err := s.call(ctx, http.MethodGet, "/hurt/d0", nil, nil); err != nil { // opens it
		return "", err
	}
	if err := s.stop(); err != nil {
		return "", err
	}
	log, err := os.ReadFile(s.dir + ".log")
	if err == nil && !strings.Contains(string(log), filepath.Base(name)) {
		err = errors.New("the server does not say what it has given up")
	}
	return "named by check and in the log", err
}

// find returns the largest file below a directory whose name is wanted.
func find(dir string, wanted func(name string) bool) (string, error) {
	type file struct {
		name string
		size int64
	}
	var found []file
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !wanted(name) {
			return err
		}
		info, err := e.Info()
		if err == nil {
			found = append(found, file{name, info.Size()})
		}
		return err
	})
	if err == nil && len(found) == 0 {
		err = errors.New("there is nothing to damage in " + dir)
	}
	if err != nil {
		return "", err
	}
	return slices.MaxFunc(found, func(a, b file) int { return int(a.size - b.size) }).name, nil
}

// overwrite writes over what stands somewhere in a file.
func overwrite(name string, where func(size int64) int64, text []byte) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt(text, max(0, where(info.Size())))
	}
	return errors.Join(err, f.Close())
}
