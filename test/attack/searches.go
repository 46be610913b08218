package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// What a database of searches has, and what one request may take of the memory of the server
// beside what it has at rest.
const (
	searchedDocs  = 1500
	searchedWords = 4000
	searchedValue = 28 << 10 // bytes that each document can be sorted by
	searchMost    = 512      // MB
)

// searched fills a database whose full-text index has long lists, or long values.
func searched(ctx context.Context, s *server, value int) error {
	if err := s.must(ctx, http.MethodPut, "/searched?q=1", nil); err != nil {
		return err
	}
	design := map[string]any{"indexes": map[string]any{"i": map[string]any{
		"analyzer": map[string]any{"name": "perfield", "default": "standard", "fields": map[string]any{"long": "keyword"}},
		"index":    `function (doc) { index("default", doc.text); index("long", doc.long, {facet: true}); }`,
	}}}
	if err := s.must(ctx, http.MethodPut, "/searched/_design/d", design); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	const atOnce = 100
	for from := 0; from < searchedDocs; from += atOnce {
		docs := make([]map[string]any, atOnce)
		for i := range docs {
			words := slices.Repeat([]string{"foo"}, searchedWords)
			for k := range words {
				if k%16 == 0 {
					words[k] = "bar"
				}
			}
			long := fmt.Sprint(rng.Uint64(), strings.Repeat("x", value))
			docs[i] = map[string]any{"text": strings.Join(words, " "), "long": long}
		}
		if err := s.must(ctx, http.MethodPost, "/searched/_bulk_docs", map[string]any{"docs": docs}); err != nil {
			return err
		}
	}
	late := time.Now().Add(2 * time.Minute) // the index is built
	for {
		status, err := s.call(ctx, http.MethodPost, "/searched/_design/d/_search/i", map[string]any{"q": "foo", "limit": 1}, nil)
		if status == http.StatusOK {
			return nil
		}
		if time.Now().After(late) || ctx.Err() != nil {
			return errors.Join(fmt.Errorf("the index is not built: status %d", status), err, ctx.Err())
		}
	}
}

// searches sends requests one at a time, and looks at what each takes of the memory.
func searches(ctx context.Context, w *world, value int, requests []map[string]any) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := searched(ctx, s, value); err != nil {
		return "", err
	}
	var answers statuses
	highest, before := 0, s.memory()
	watched, done := context.WithCancel(ctx)
	each(ctx, 2, func(_ context.Context, i int) {
		if i == 1 {
			highest = most(watched, s)
			return
		}
		defer done()
		for _, r := range requests {
			status, _ := s.call(ctx, http.MethodPost, "/searched/_design/d/_search/i", r, nil)
			answers.add(status)
		}
	})
	seen := fmt.Sprintf("answers %v, memory %d MB, at most %d", &answers, before, highest)
	if highest > before+searchMost {
		return seen, fmt.Errorf("one request took %d MB", highest-before)
	}
	return seen, s.await(ctx, 5*time.Second)
}

func repeatedClauses(ctx context.Context, w *world) (string, error) {
	var requests []map[string]any
	for _, part := range []string{"foo OR ", "foo AND ", "(foo OR bar^2) ", "fo* OR ", "-bar foo "} {
		requests = append(requests, map[string]any{"q": strings.Repeat(part, 400) + "foo", "limit": 1})
	}
	return searches(ctx, w, 0, requests)
}

func repeatedSorts(ctx context.Context, w *world) (string, error) {
	parts := slices.Repeat([]string{"long<string>", "-long<string>"}, 60)
	return searches(ctx, w, searchedValue, []map[string]any{
		{"q": "foo", "sort": parts, "limit": 1},
		{"q": "foo", "sort": "long<string>", "counts": []string{"long"}, "limit": 1},
		{"q": "foo", "group_field": "long", "group_sort": parts, "group_limit": 1, "limit": 1},
		{"q": "*:*", "drilldown": []string{"long", "x"}, "limit": 1},
	})
}
