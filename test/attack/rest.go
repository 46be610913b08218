package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	restLimit = 120             // MB more than at the start that a server may keep without requests
	restAfter = 8 * time.Second // of idleness, at most
	restDocs  = 500
)

// greedy is a view that needs blocks of many sizes for each document, and a filter
// that does so for a feed.
func greedy() map[string]any {
	return map[string]any{
		"views": map[string]any{"v": map[string]string{
			"map":    "function (doc) { var kept = []; for (var mb = 0.75; mb < 14; mb *= 2) { kept.push('x'.repeat((doc.n % 7 + mb) * 1048576)); } emit(doc.n % 10, kept.length); }",
			"reduce": "function (keys, values, rereduce) { return sum(values); }",
		}},
		"filters": map[string]string{"f": "function (doc, req) { return 'x'.repeat(8 * 1048576).length > doc.n; }"},
	}
}

// atRest has a server do a bit of everything, some of it with much memory, and looks at
// what it keeps when it has nothing to do any more.
func atRest(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	before, peak := s.memory(), 0
	var failed error
	w.attacked(ctx, func(ctx context.Context) {
		loads, ctx := errgroup.WithContext(ctx)
		for n := range 4 {
			loads.Go(func() error {
				for round := 0; ctx.Err() == nil; round++ {
					if err := s.aBitOfEverything(ctx, fmt.Sprintf("/mixed-%d-%d", n, round)); err != nil && ctx.Err() == nil {
						return err
					}
				}
				return nil
			})
		}
		for rest(ctx, 100*time.Millisecond) {
			peak = max(peak, s.memory())
		}
		failed = loads.Wait()
	})
	if failed != nil {
		return "", failed
	}
	if err := w.innocent.stop(); err != nil {
		return "", err
	}
	now := s.memory()
	for begin := time.Now(); now > before+restLimit && time.Since(begin) < restAfter && rest(ctx, 100*time.Millisecond); {
		now = s.memory()
	}
	seen := fmt.Sprintf("%d MB at the start, %d MB under load, %d MB at rest", before, peak, now)
	if now > before+restLimit {
		return seen, fmt.Errorf("it keeps %d MB, more than %d", now-before, restLimit)
	}
	return seen, nil
}

// aBitOfEverything makes a database, asks it in each way, copies and deletes it.
func (s *server) aBitOfEverything(ctx context.Context, db string) error {
	body := struct {
		Docs []map[string]any `json:"docs"`
	}{}
	for i := range restDocs {
		body.Docs = append(body.Docs, map[string]any{"_id": fmt.Sprintf("d%03d", i), "n": i, "text": strings.Repeat("word ", 100)})
	}
	login := "http://" + strings.ReplaceAll(user+":"+password, " ", "%20") + "@" + s.host
	for _, step := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPut, db + "?q=2", nil},
		{http.MethodPost, db + "/_bulk_docs", body},
		{http.MethodPut, db + "/_design/d", greedy()},
		{http.MethodPost, db + "/_index", map[string]any{"index": map[string]any{"fields": []string{"n"}}}},
		{http.MethodPost, db + "/_find", map[string]any{"selector": map[string]any{"n": map[string]int{"$gt": 100}}, "limit": 200}},
		{http.MethodGet, db + "/_changes?filter=d/f&include_docs=true", nil},
		{http.MethodGet, db + "/_design/d/_view/v?group=true", nil},
		{http.MethodPut, db + "/large", map[string]string{"text": strings.Repeat("x", 4<<20)}},
		{http.MethodPost, "/_replicate", map[string]any{"source": login + db, "target": login + db + "-copy", "create_target": true}},
		{http.MethodDelete, db + "-copy", nil},
		{http.MethodDelete, db, nil},
	} {
		if err := s.must(ctx, step.method, step.path, step.body); err != nil {
			return err
		}
	}
	return nil
}
