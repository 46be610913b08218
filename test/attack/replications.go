package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// endlessSource is a server whose databases have something without an end: the names
// of the databases say what.
func endlessSource() *httptest.Server {
	piece := bytes.Repeat([]byte("x"), 256<<10)
	endless := func(w http.ResponseWriter, begin string) {
		_, err := io.WriteString(w, begin)
		for err == nil {
			_, err = w.Write(piece)
		}
	}
	const rev = "1-967a00dff5e02add41819138abb3284d"
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		kind, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		kind, _, _ = strings.Cut(kind, "-")
		switch {
		case path == "":
			_, _ = io.WriteString(w, `{"db_name":"x","instance_start_time":"0","update_seq":"9","doc_count":9}`)
		case kind == "checkpoint" && strings.HasPrefix(path, "_local"):
			endless(w, `{"_id":"_local/x","session_id":"`)
		case kind == "row" && path == "_changes":
			endless(w, `{"results":[{"seq":1,"id":"`)
		case path == "_changes":
			_, _ = io.WriteString(w, `{"results":[{"seq":1,"id":"doc","changes":[{"rev":"`+rev+`"}]}],"last_seq":1}`)
		case path == "_bulk_get":
			endless(w, `{"results":[{"id":"doc","docs":[{"ok":{"_id":"doc","_rev":"`+rev+`","v":"`)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"not_found","reason":"missing"}`)
		}
	}))
}

// replicate asks for a replication on an account, and returns the status.
func replicate(ctx context.Context, s *server, name, word string, what map[string]any) (int, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.host+"/_replicate", bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	r.SetBasicAuth(name, word)
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, err
	}
	_ = answer.Body.Close() // the status says enough
	return answer.StatusCode, nil
}

func endlessRows(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := s.must(ctx, http.MethodPut, "/copy", nil); err != nil {
		return "", err
	}
	source := endlessSource()
	defer source.Close()
	defer source.CloseClientConnections()
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	const jobs = 14
	before, highest := s.memory(), 0
	var answers statuses
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, jobs+1, func(ctx context.Context, i int) {
			if i == jobs {
				highest = most(ctx, s)
				return
			}
			kind := []string{"row", "document", "checkpoint"}[i%3]
			for n := 0; ctx.Err() == nil; n++ {
				status, _ := replicate(ctx, s, user, password, map[string]any{"source": fmt.Sprintf("%s/%s-%d-%d", source.URL, kind, i, n), "target": "copy"})
				if ctx.Err() == nil {
					answers.add(status)
				}
			}
		})
	})
	seen := fmt.Sprintf("answers %v, memory %d MB, at most %d", &answers, before, highest)
	const limit = 600 // a quarter of the budget on a machine of 8 GB, and what the collector leaves
	if highest > before+limit {
		return seen, fmt.Errorf("it took %d MB", highest-before)
	}
	return seen, back(ctx, s)
}

func blackHoles(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	for path, body := range map[string]any{
		"/_users": nil, "/copy": nil,
		"/_users/org.couchdb.user:greedy": map[string]any{"name": "greedy", "type": "user", "roles": []string{}, "password": "x"},
	} {
		if err := s.must(ctx, http.MethodPut, path, body); err != nil && body != nil {
			return "", err
		}
	}
	// The kernel takes connections for it, and they get no answer.
	hole, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = hole.Close() }() // it ends with the case
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	const jobs = 500
	var answers statuses
	var took time.Duration
	var failure error
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 8, func(ctx context.Context, i int) {
			for n := i; n < jobs; n += 8 {
				where := fmt.Sprintf("http://%s/db%d", hole.Addr(), n)
				status, _ := replicate(ctx, s, "greedy", "x", map[string]any{"source": where, "target": where + "x", "continuous": true})
				answers.add(status)
			}
		})
		start := time.Now()
		status, err := replicate(ctx, s, user, password, map[string]any{"source": "kept", "target": "copy"})
		if took = time.Since(start); err != nil || status != http.StatusOK {
			failure = errors.Join(fmt.Errorf("another account's replication: status %d after %.1f s", status, took.Seconds()), err)
		}
		<-ctx.Done()
	})
	return fmt.Sprintf("answers %v, another account's replication was done after %.2f s", &answers, took.Seconds()), failure
}
