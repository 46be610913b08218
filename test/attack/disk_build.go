package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	buildDisk    = "200m"
	rowsDocs     = 3000
	rowsPad      = 8 << 10
	answerWithin = 10 * time.Second // of a query whose index finds no space, and of a stop
)

// design is a design document whose only view has ten rows as large as the document.
func design(name string) map[string]any {
	return map[string]any{"views": map[string]any{name: map[string]string{
		"map": "function (doc) { for (var i = 0; i < 10; i++) emit([i, doc._id], doc.pad); }",
	}}}
}

// fillDatabase makes a database of documents that cannot be compressed.
func (s *server) fillDatabase(ctx context.Context, db string) error {
	if err := s.must(ctx, http.MethodPut, "/"+db+"?q=1", nil); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for first := 0; first < rowsDocs; first += 100 {
		var docs []map[string]string
		for i := range 100 {
			pad := make([]byte, rowsPad)
			for j := range pad {
				pad[j] = byte(' ' + 1 + rng.IntN(90))
			}
			docs = append(docs, map[string]string{"_id": fmt.Sprintf("d%06d", first+i), "pad": strings.Map(func(r rune) rune {
				if r == '"' || r == '\\' {
					return 'x'
				}
				return r
			}, string(pad))})
		}
		if err := s.must(ctx, http.MethodPost, "/"+db+"/_bulk_docs", map[string]any{"docs": docs}); err != nil {
			return err
		}
	}
	return nil
}

// used is how many bytes of a disk are taken.
func used(dir string) int64 {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return -1
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}

// usedBelow waits until so much of a disk is taken at most, and returns how much is.
func usedBelow(ctx context.Context, dir string, most int64) int64 {
	for start := time.Now(); used(dir) > most && time.Since(start) < 5*time.Second; {
		if !rest(ctx, 50*time.Millisecond) {
			break
		}
	}
	return used(dir)
}

// fullDiskBuild builds an index that does not fit onto the disk, while documents are
// written and deleted, removes it, removes the database of another one, and stops
// the server.
func fullDiskBuild(ctx context.Context, w *world) (string, error) {
	s, err := w.server(ctx)
	if err != nil {
		return "", err
	}
	disk, err := w.smallDisk(ctx, s, buildDisk)
	if err != nil {
		return "", err
	}
	if err := s.start(ctx); err != nil {
		return "", err
	}
	if err := s.fillDatabase(ctx, "large"); err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	before := used(disk)
	if _, err := w.innocent.take(); err != nil {
		return "", err
	}
	seen, err := w.fillWithRows(ctx, s)
	if err == nil {
		var removed string
		removed, err = s.removeRows(ctx, disk, before)
		seen += removed
	}
	var take error
	w.meanwhile, take = w.innocent.take()
	if err = errors.Join(err, take, w.innocent.stop()); err != nil {
		return seen, err
	}
	stopped, err := s.stopFull(ctx)
	return seen + stopped, err
}

// fillWithRows asks for the view again and again while documents are written.
func (w *world) fillWithRows(ctx context.Context, s *server) (string, error) {
	if err := s.must(ctx, http.MethodPut, "/large/_design/rows", design("all")); err != nil {
		return "", err
	}
	var asked, writes statuses
	var longest time.Duration
	g, both := errgroup.WithContext(ctx)
	end := time.Now().Add(w.length + 4*time.Second) // the first query fills the disk
	g.Go(func() error {
		for time.Now().Before(end) {
			start := time.Now()
			status, _ := s.call(both, http.MethodGet, "/large/_design/rows/_view/all?limit=1", nil, nil)
			asked.add(status)
			longest = max(longest, time.Since(start))
			if !rest(both, 50*time.Millisecond) {
				break
			}
		}
		return nil
	})
	g.Go(func() error {
		for i := 0; time.Now().Before(end) && rest(both, 10*time.Millisecond); i++ {
			var made struct{ Rev string }
			path := fmt.Sprintf("/large/small-%d", i)
			status, _ := s.call(both, http.MethodPut, path, map[string]string{"pad": "x"}, &made)
			writes.add(status)
			status, _ = s.call(both, http.MethodDelete, path+"?rev="+made.Rev, nil, nil)
			writes.add(status)
		}
		return nil
	})
	err := g.Wait()
	seen := fmt.Sprintf("query %s, %.1f s at most, PUT and DELETE %s", asked.String(), longest.Seconds(), writes.String())
	switch {
	case err != nil:
		return seen, err
	case asked.n[http.StatusInsufficientStorage] == 0 || longest > answerWithin+w.length:
		return seen, errors.New("the query that waits for an index without space is not told")
	case writes.n[http.StatusCreated] == 0 || writes.n[http.StatusInsufficientStorage] > 0 || writes.n[0] > 0:
		return seen, errors.New("documents have no space")
	}
	var answer struct{ Reason string }
	if stale, _ := s.call(ctx, http.MethodGet, "/large/_design/rows/_view/all?limit=1&update=false", nil, &answer); stale != http.StatusOK {
		return seen, fmt.Errorf("update=false: status %d, %s", stale, answer.Reason)
	}
	return seen, nil
}

// removeRows removes the index, builds it again, and removes the database under it.
func (s *server) removeRows(ctx context.Context, disk string, before int64) (string, error) {
	const mb = 1 << 20
	full := used(disk)
	var doc struct {
		Rev string `json:"_rev"`
	}
	_, err := s.call(ctx, http.MethodGet, "/large/_design/rows", nil, &doc)
	deleted, _ := s.call(ctx, http.MethodDelete, "/large/_design/rows?rev="+doc.Rev, nil, nil)
	cleaned, _ := s.call(ctx, http.MethodPost, "/large/_view_cleanup", struct{}{}, nil)
	left := usedBelow(ctx, disk, before+8*mb)
	seen := fmt.Sprintf("; of %d MB, DELETE of the design document %d and _view_cleanup %d left %d MB", full/mb, deleted, cleaned, left/mb)
	if err != nil || left > before+8*mb {
		return seen, errors.Join(err, errors.New("the index still takes space"))
	}
	status, _ := s.call(ctx, http.MethodPut, "/large/_design/rows", design("again"), nil)
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() { _, _ = s.call(ctx, http.MethodGet, "/large/_design/rows/_view/again?limit=1", nil, nil) }) // ended by the DELETE
	for start := time.Now(); used(disk) < 100*mb && time.Since(start) < answerWithin; {
		if !rest(ctx, 20*time.Millisecond) {
			break
		}
	}
	full = used(disk)
	gone, _ := s.call(ctx, http.MethodDelete, "/large", nil, nil)
	left = usedBelow(ctx, disk, 20*mb)
	seen += fmt.Sprintf("; built again (%d) to %d MB, DELETE of the database %d left %d MB", status, full/mb, gone, left/mb)
	if left > 20*mb {
		return seen, errors.New("the database still takes space")
	}
	return seen, nil
}

// stopFull fills the disk with another index and asks the server to end.
func (s *server) stopFull(ctx context.Context) (string, error) {
	if err := s.fillDatabase(ctx, "other"); err != nil {
		return "", err
	}
	if err := s.must(ctx, http.MethodPut, "/other/_design/rows", design("all")); err != nil {
		return "", err
	}
	ask, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	_, _ = s.call(ask, http.MethodGet, "/other/_design/rows/_view/all?limit=1", nil, nil) // fills it
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() { _, _ = s.call(ctx, http.MethodGet, "/other/_design/rows/_view/all?limit=1", nil, nil) }) // ended by the stop
	start := time.Now()
	s.process.Signal(syscall.SIGTERM)
	select {
	case <-s.process.Ended():
	case <-time.After(2 * answerWithin):
	}
	took := time.Since(start)
	seen := fmt.Sprintf("; ended %.1f s after SIGTERM", took.Seconds())
	if took > answerWithin {
		s.process.Kill()
		return seen, errors.New("the server does not end")
	}
	return seen, s.start(ctx)
}
