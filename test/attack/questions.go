package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// tempting fills a database with documents that are expensive to match.
func tempting(ctx context.Context, s *server) error {
	if err := s.must(ctx, http.MethodPut, "/tempting?q=2", nil); err != nil {
		return err
	}
	docs := make([]map[string]any, 300)
	for i := range docs {
		docs[i] = map[string]any{"text": strings.Repeat("a", 5000)}
	}
	return s.must(ctx, http.MethodPost, "/tempting/_bulk_docs", map[string]any{"docs": docs})
}

func selectors(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := tempting(ctx, s); err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	regex := func(pattern string) map[string]any { return map[string]any{"text": map[string]any{"$regex": pattern}} }
	many := make([]any, 2000)
	for i := range many {
		many[i] = regex(fmt.Sprintf("(a|b)*%d$", i))
	}
	questions := []any{regex(`(a+)\1b`), regex(`(a{1000}){1000}`), regex(`^(a+)+$b`), map[string]any{"$or": many}}
	var answers statuses
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 8, func(ctx context.Context, i int) {
			for ctx.Err() == nil {
				status, _ := s.call(ctx, http.MethodPost, "/tempting/_find", map[string]any{"selector": questions[i%len(questions)]}, nil)
				if ctx.Err() == nil {
					answers.add(status)
				}
			}
		})
	})
	return fmt.Sprintf("answers %v", &answers), idleSoon(ctx, s)
}

// idleSoon checks that a server without requests is idle again.
func idleSoon(ctx context.Context, s *server) error {
	late := time.Now().Add(15 * time.Second)
	for {
		start := s.processor()
		if !rest(ctx, time.Second) {
			return ctx.Err()
		}
		used := s.processor() - start
		if used < 500*time.Millisecond {
			return back(ctx, s)
		}
		if time.Now().After(late) {
			return fmt.Errorf("it still works for clients that are gone: %v of processor time in a second", used)
		}
	}
}

func functions(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := tempting(ctx, s); err != nil {
		return "", err
	}
	for name, code := range map[string]string{
		"loop": "function (doc) { while (true) {} }", "heap": "function (doc) { var a = []; while (true) a.push(doc.text + a.length) }",
		"deep": "function (doc) { (function f() { f() })() }", "text": "function (doc) { var s = doc.text; while (true) s += s }",
	} {
		design := map[string]any{"views": map[string]any{"v": map[string]any{"map": code}}}
		if err := s.must(ctx, http.MethodPut, "/tempting/_design/"+name, design); err != nil {
			return "", err
		}
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	before, highest := s.memory(), 0
	var answers statuses
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 9, func(ctx context.Context, i int) {
			if i == 8 {
				highest = most(ctx, s)
				return
			}
			name := []string{"loop", "heap", "deep", "text"}[i%4]
			for ctx.Err() == nil {
				status, _ := s.call(ctx, http.MethodGet, "/tempting/_design/"+name+"/_view/v", nil, nil)
				if ctx.Err() == nil {
					answers.add(status)
				}
			}
		})
	})
	seen := fmt.Sprintf("answers %v, memory %d MB, at most %d", &answers, before, highest)
	if highest > before+1024 {
		return seen, fmt.Errorf("it took %d MB", highest-before)
	}
	return seen, back(ctx, s)
}

func randomRequests(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := s.must(ctx, http.MethodPut, "/other", nil); err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	var sent, failures atomic.Int64
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 16, func(ctx context.Context, i int) {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				sent.Add(1)
				if strings.HasPrefix(oneRandom(ctx, s, i, rng), "HTTP/1.1 500") {
					failures.Add(1)
				}
			}
		})
	})
	seen := fmt.Sprintf("%d requests", sent.Load())
	if n := failures.Load(); n > 0 {
		return seen, fmt.Errorf("%d were answered with status 500", n)
	}
	return seen, back(ctx, s)
}

// basic is the header of the administrator.
func basic() string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n"
}

// oneRandom sends something that is no request, or an odd one, and returns how
// the answer begins.
func oneRandom(ctx context.Context, s *server, i int, rng *rand.Rand) string {
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	odd := func() string {
		b := make([]byte, rng.IntN(40))
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		return string(b)
	}
	c, err := dial(ctx, i, s.host)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }() // the server may have closed it
	_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond))
	text := odd()
	if rng.IntN(4) > 0 {
		body := pick("{", "[]", `{"docs":`, `{"docs":[{"_id":5}]}`, `{"selector":{"$and":{}}}`, strings.Repeat("[", 20_000), `{"a":`+strings.Repeat("9", 5000)+`}`, odd(), "null")
		text = pick("GET", "PUT", "POST", "DELETE", "HEAD", "COPY", "OPTIONS", "PATCH", "X") + " /" +
			pick("other", "", "_users", "_all_dbs", "..", "%2e%2e%2f", "%ff", odd()) + pick("", "/", "/_bulk_docs", "/_find", "/_changes", "/a%00b", "/_design/x/_view/y", "/_local/x", "/_purge") +
			pick("", "?rev=1", "?since=%22", "?keys=[", "?limit=-1", "?startkey="+strings.Repeat("[", 300), "?"+strings.Repeat("a=b&", 200)) + " HTTP/1.1\r\nHost: " + pick("a", odd()) + "\r\n" +
			pick("", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: -1\r\n", "Content-Encoding: gzip\r\n", odd()+"\r\n") +
			pick("", basic(), basic(), "Authorization: Bearer "+strings.Repeat("a", 5000)+"\r\n", "Cookie: AuthSession="+strings.Repeat("A", 80)+"\r\n") +
			"Content-Type: application/json\r\nConnection: close\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
	}
	if _, err := io.WriteString(c, text); err != nil {
		return ""
	}
	answer := make([]byte, 12)
	n, _ := io.ReadFull(c, answer) // no answer is one as well
	return string(answer[:n])
}
