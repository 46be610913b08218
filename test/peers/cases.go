package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"divan/test/child"
)

// world is the servers and what runs.
type world struct {
	config
	modules          string // where node_modules is
	one, other       *server
	pouch            *server
	processes        []*child.Process
	filled, pouchful bool // the source of the cases is there
}

// testCase is one way to replicate; run tells what was compared.
type testCase struct {
	name string
	run  func(ctx context.Context) (string, error)
}

func (w *world) cases() []testCase {
	return []testCase{
		{"direct", func(ctx context.Context) (string, error) { return w.copied(ctx, w.one, w.one, w.one) }},
		{"push", func(ctx context.Context) (string, error) { return w.copied(ctx, w.one, w.one, w.other) }},
		{"pull", func(ctx context.Context) (string, error) { return w.copied(ctx, w.other, w.one, w.other) }},
		{"continuous both ways", w.continuous},
		{"push to pouchdb-server", func(ctx context.Context) (string, error) { return w.pouched(ctx, w.one, w.one, w.pouch) }},
		{"pull from pouchdb-server", w.pulled},
		{"pouchdb-server pulls and pushes", w.pouchWorks},
		{"live sync through a restart", w.liveSync},
	}
}

// copied copies a large database by a job on by.
func (w *world) copied(ctx context.Context, by, from, to *server) (string, error) {
	if !w.filled {
		if err := w.one.create(ctx, "source"); err != nil {
			return "", err
		}
		if err := w.one.fill(ctx, "source", newGenerator(w.seed), w.documents, w.largest); err != nil {
			return "", err
		}
		w.filled = true
	}
	return w.copy(ctx, by, from, "source", to)
}

// pouched does so with a smaller one: PouchDB takes its time.
func (w *world) pouched(ctx context.Context, by, from, to *server) (string, error) {
	if !w.pouchful {
		if err := w.one.create(ctx, "small"); err != nil {
			return "", err
		}
		if err := w.one.fill(ctx, "small", newGenerator(w.seed+1), w.pouchDocuments, w.pouchLargest); err != nil {
			return "", err
		}
		w.pouchful = true
	}
	return w.copy(ctx, by, from, "small", to)
}

// copy replicates into a new database and compares.
func (w *world) copy(ctx context.Context, by, from *server, source string, to *server) (string, error) {
	target := fmt.Sprintf("target%d", time.Now().UnixNano())
	if err := to.create(ctx, target); err != nil {
		return "", err
	}
	begin := time.Now()
	n, err := by.replicate(ctx, from.url(source), to.url(target))
	if err != nil {
		return "", err
	}
	took := time.Since(begin)
	held, err := compare(ctx, from, source, to, target)
	if err != nil {
		return "", err
	}
	again, err := by.replicate(ctx, from.url(source), to.url(target))
	if err != nil {
		return "", err
	}
	if again > n {
		return "", fmt.Errorf("the second run has written %d documents again", again-n)
	}
	return fmt.Sprintf("%d written in %.1f s, %d leaves equal", n, took.Seconds(), held), nil
}

// pulled has Divan pull from pouchdb-server what it has pushed there.
func (w *world) pulled(ctx context.Context) (string, error) {
	if err := w.pouch.create(ctx, "origin"); err != nil {
		return "", err
	}
	if err := w.pouch.fill(ctx, "origin", newGenerator(w.seed+2), w.pouchDocuments, w.pouchLargest); err != nil {
		return "", err
	}
	return w.copy(ctx, w.other, w.pouch, "origin", w.other)
}

// pouchWorks has pouchdb-server do the work in both directions.
func (w *world) pouchWorks(ctx context.Context) (string, error) {
	pull, err := w.pouched(ctx, w.pouch, w.one, w.pouch)
	if err != nil {
		return "", err
	}
	if err := w.pouch.create(ctx, "pushed"); err != nil {
		return "", err
	}
	if err := w.pouch.fill(ctx, "pushed", newGenerator(w.seed+3), w.pouchDocuments, w.pouchLargest); err != nil {
		return "", err
	}
	push, err := w.copy(ctx, w.pouch, w.pouch, "pushed", w.other)
	return "pull " + pull + "; push " + push, err
}

// continuous has two jobs keep two databases in sync while clients write to both.
func (w *world) continuous(ctx context.Context) (string, error) {
	ends := []*server{w.one, w.other}
	for _, s := range ends {
		if err := s.create(ctx, "both"); err != nil {
			return "", err
		}
	}
	for i, s := range ends {
		job := map[string]any{"source": s.url("both"), "target": ends[1-i].url("both"), "continuous": true}
		if err := w.one.call(ctx, http.MethodPost, "/_replicate", job, nil); err != nil {
			return "", err
		}
	}
	errs := make([]error, len(ends))
	var writers sync.WaitGroup
	for i, s := range ends {
		writers.Go(func() { errs[i] = s.write(ctx, "both", i, w.documents/10) })
	}
	writers.Wait()
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	if err := w.settled(ctx, func() (map[string][]string, error) { return w.other.leaves(ctx, "both") }, "both"); err != nil {
		return "", err
	}
	n, err := compare(ctx, w.one, "both", w.other, "both")
	return fmt.Sprintf("%d leaves equal", n), err
}

// write writes documents of its own, and edits those that the other end edits
// too.
func (s *server) write(ctx context.Context, db string, end, n int) error {
	for i := range n {
		var docs []any
		for k := range 5 {
			docs = append(docs, map[string]any{"_id": fmt.Sprintf("end%d-%d-%d", end, i, k), "i": i})
		}
		id := fmt.Sprintf("shared-%d", i%200)
		var current map[string]any
		d := map[string]any{"_id": id, "by": end, "i": i}
		if err := s.call(ctx, http.MethodGet, "/"+db+"/"+id, nil, &current); err == nil {
			d["_rev"] = current["_rev"]
			d["_deleted"] = i%7 == 0
		}
		if err := s.call(ctx, http.MethodPost, "/"+db+"/_bulk_docs", map[string]any{"docs": append(docs, d)}, nil); err != nil {
			return err
		}
	}
	return nil
}

// settled waits until w.one has the same leaves as another place.
func (w *world) settled(ctx context.Context, other func() (map[string][]string, error), db string) error {
	for end := time.Now().Add(5 * patience); ; {
		a, err := w.one.leaves(ctx, db)
		if err != nil {
			return err
		}
		b, err := other()
		if err != nil {
			return err
		}
		same := len(a) == len(b)
		for id, revs := range a {
			same = same && slices.Equal(revs, b[id])
		}
		switch {
		case same:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("not the same in the end: %d and %d documents", len(a), len(b))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// liveSync keeps a PouchDB in sync with a database while both write, and the
// server is killed and started again.
func (w *world) liveSync(ctx context.Context) (string, error) {
	if err := w.one.create(ctx, "live"); err != nil {
		return "", err
	}
	l, err := w.live(ctx, w.one.url("live"), filepath.Join(w.dir, "data", "live"))
	if err != nil {
		return "", err
	}
	const each = 200
	for round := range 3 {
		if round > 0 {
			w.one.process.Kill()
			if err := w.one.start(ctx); err != nil {
				return "", err
			}
		}
		var serverErr error
		var writer sync.WaitGroup
		writer.Go(func() { serverErr = w.one.write(ctx, "live", round, each) })
		_, err := l.say(fmt.Sprintf("write %d %d", round*each, each))
		writer.Wait()
		if err := errors.Join(err, serverErr); err != nil {
			return "", err
		}
	}
	n := 0
	err = w.settled(ctx, func() (map[string][]string, error) {
		line, err := l.say("dump")
		if err != nil {
			return nil, err
		}
		var rows [][2]json.RawMessage
		if err := json.Unmarshal([]byte(line), &rows); err != nil {
			return nil, err
		}
		out := map[string][]string{}
		for _, row := range rows {
			var id string
			var revs []string
			if err := json.Unmarshal(row[0], &id); err != nil {
				return nil, err
			}
			if err := json.Unmarshal(row[1], &revs); err != nil {
				return nil, err
			}
			out[id] = revs
		}
		n = len(out)
		return out, nil
	}, "live")
	return fmt.Sprintf("%d documents the same, the server killed twice", n), err
}
