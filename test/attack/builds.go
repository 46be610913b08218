package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// indexed makes a database with documents and a view by name for each function.
func (s *server) indexed(ctx context.Context, db string, docs int, views map[string]string) error {
	if err := s.must(ctx, http.MethodPut, "/"+db+"?q=2", nil); err != nil {
		return err
	}
	for docs > 0 {
		some := make([]map[string]any, min(docs, 1000))
		for i := range some {
			some[i] = map[string]any{"text": strings.Repeat("text", 20)}
		}
		docs -= len(some)
		if err := s.must(ctx, http.MethodPost, "/"+db+"/_bulk_docs", map[string]any{"docs": some}); err != nil {
			return err
		}
	}
	for name, code := range views {
		design := map[string]any{"autoupdate": false, "views": map[string]any{"v": map[string]any{"map": code}}}
		if err := s.must(ctx, http.MethodPut, "/"+db+"/_design/"+name, design); err != nil {
			return err
		}
	}
	return nil
}

// buildMemory is how much memory index builds may cost here, in MB: their budget, one
// document of a million rows, and what the collector has not seen yet.
const buildMemory = 1200

func largeBuilds(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := errors.Join(
		s.indexed(ctx, "wide", 3000, map[string]string{
			"rows": "function (doc) { for (var i = 0; i < 400; i++) emit([i, doc._id], doc.text.repeat(10)) }",
		}),
		s.indexed(ctx, "many", 60, map[string]string{"rows": "function (doc) { for (var i = 0; i < 1e6; i++) emit(i) }"}),
	); err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	before, highest := s.memory(), 0
	var answers statuses
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 3, func(ctx context.Context, i int) {
			if i == 2 {
				highest = most(ctx, s)
				return
			}
			for ctx.Err() == nil {
				status, _ := s.call(ctx, http.MethodGet, "/"+[]string{"wide", "many"}[i]+"/_design/rows/_view/v?limit=1", nil, nil)
				if ctx.Err() == nil {
					answers.add(status)
				}
			}
		})
	})
	seen := fmt.Sprintf("answers %v, memory %d MB, at most %d", &answers, before, highest)
	for _, db := range []string{"wide", "many"} { // the builds go on by themselves
		if err := s.must(ctx, http.MethodDelete, "/"+db, nil); err != nil {
			return seen, err
		}
	}
	if highest > before+buildMemory {
		return seen, fmt.Errorf("it took %d MB", highest-before)
	}
	return seen, back(ctx, s)
}

// lostFunctions are functions whose rows are more than most indexes hold.
func lostFunctions() map[string]string {
	return map[string]string{
		"key":   "function (doc) { emit('x'.repeat(20e6)) }",
		"value": "function (doc) { emit(doc._id, 'x'.repeat(30e6)) }", // which is indexed
		"many":  "function (doc) { for (var i = 0; i < 1e7; i++) emit(i) }",
		"stack": "function (doc) { (function f() { f() })() }",
		"loop":  "function (doc) { for (;;) emit(1, 'x'.repeat(1e5)) }",
	}
}

// leftOut returns how many documents the index of a database has left out.
func (s *server) leftOut(ctx context.Context, db string) int {
	var info struct {
		Index struct {
			LeftOut struct {
				Count int
			} `json:"documents_left_out"`
		} `json:"view_index"`
	}
	if _, err := s.call(ctx, http.MethodGet, "/"+db+"/_design/lost/_info", nil, &info); err != nil {
		return -1
	}
	return info.Index.LeftOut.Count
}

func lostRows(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	for name, code := range lostFunctions() {
		if err := s.indexed(ctx, name, 1, map[string]string{"lost": code}); err != nil {
			return "", err
		}
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	var answers, stale statuses
	wrong := make(chan error, len(lostFunctions()))
	start := s.processor()
	w.attacked(ctx, func(ctx context.Context) {
		names := []string{"key", "value", "many", "stack", "loop"}
		each(ctx, len(names), func(ctx context.Context, i int) {
			path := "/" + names[i] + "/_design/lost/_view/v?limit=0"
			for first := true; ctx.Err() == nil; first = false {
				var told rowsOrRefusal
				status, err := s.call(ctx, http.MethodGet, path, nil, &told)
				if err != nil || ctx.Err() != nil {
					continue
				}
				answers.add(status)
				complete := status == http.StatusOK && (told.Total == 1 || s.leftOut(ctx, names[i]) == 1)
				if first && !complete && !strings.Contains(told.Reason, "map function of v of _design/lost") {
					wrong <- fmt.Errorf("%s: status %d, %d rows, %s: %s", names[i], status, told.Total, told.Error, told.Reason)
				}
				if status, _ = s.call(ctx, http.MethodGet, path+"&update=false", nil, nil); ctx.Err() == nil {
					stale.add(status)
				}
				rest(ctx, 20*time.Millisecond)
			}
		})
	})
	close(wrong)
	used := s.processor() - start
	seen := fmt.Sprintf("answers %v, without update %v, %.1f s of processor time", &answers, &stale, used.Seconds())
	for e := range wrong {
		err = errors.Join(err, e)
	}
	return seen, errors.Join(err, back(ctx, s))
}
