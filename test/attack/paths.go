package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// slashes builds indexes of databases with slashes in their names, and looks
// whether they are there after a restart, without any more work.
func slashes(ctx context.Context, w *world) (string, error) {
	const docs = 300
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	names := []string{"team", "team/pond", "team/pond/frog", "a/b/c/d/e"}
	for _, name := range names {
		if err := viewed(ctx, s, "/"+url.PathEscape(name), docs); err != nil {
			return "", err
		}
	}
	if err := s.stop(); err != nil {
		return "", err
	}
	if err := s.start(ctx); err != nil {
		return "", err
	}
	if err := s.must(ctx, http.MethodDelete, "/team%2Fpond", nil); err != nil { // its neighbours are left alone
		return "", err
	}
	lost := 0
	for _, name := range names {
		if name == "team/pond" {
			continue
		}
		var answer struct {
			Rows []struct{ Value int }
		}
		if _, err := s.call(ctx, http.MethodGet, "/"+url.PathEscape(name)+"/_design/d/_view/v?update=false", nil, &answer); err != nil {
			return "", err
		}
		if len(answer.Rows) != 1 || answer.Rows[0].Value != docs {
			lost++
		}
	}
	seen := fmt.Sprintf("%d of %d indexes were dropped", lost, len(names)-1)
	if lost > 0 {
		return seen, errors.New("indexes do not outlive a restart")
	}
	return seen, nil
}

// viewed makes a database with documents and a view of them, and builds it.
func viewed(ctx context.Context, s *server, db string, docs int) error {
	if err := s.must(ctx, http.MethodPut, db+"?q=2", nil); err != nil {
		return err
	}
	body := struct {
		Docs []map[string]int `json:"docs"`
	}{}
	for i := range docs {
		body.Docs = append(body.Docs, map[string]int{"n": i})
	}
	if err := s.must(ctx, http.MethodPost, db+"/_bulk_docs", body); err != nil {
		return err
	}
	design := map[string]any{"views": map[string]any{"v": map[string]string{"map": "function (doc) { emit(doc.n, null); }", "reduce": "_count"}}}
	if err := s.must(ctx, http.MethodPut, db+"/_design/d", design); err != nil {
		return err
	}
	return s.must(ctx, http.MethodGet, db+"/_design/d/_view/v", nil)
}
