package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"divan/storage/pause"
)

// report tells how one step went; diffs is empty when it passed.
type report struct {
	title  string
	method string
	path   string
	diffs  []string
}

// comparedHeaders are the headers that are part of the contract of every step.
func comparedHeaders(s *step) []string {
	names := []string{
		"content-type", "etag", "location", "content-md5", "content-encoding", "accept-ranges",
		"content-range", "content-disposition", "www-authenticate", "allow", "access-control-allow-origin",
		"access-control-allow-credentials", "access-control-allow-methods", "access-control-expose-headers",
		"access-control-max-age",
	}
	for _, opt := range []string{"headers", "any-headers"} {
		for _, h := range s.list(opt) {
			names = append(names, strings.ToLower(h))
		}
	}
	return names
}

// How many seconds a step that may be tried again is tried: persistent at least, as
// processors that others need make any wait longer than it took where the transcript was
// recorded (a password hash ten times under the race detector); hopeless when the step is
// known to differ.
const (
	persistent = 60
	hopeless   = 1
)

// tryAgain is the pause between two tries.
const tryAgain = 100 * time.Millisecond

// transcript is a file and what is known about the server that it is replayed
// against.
type transcript struct {
	name   string // for messages
	text   string
	base   *url.URL                // carries the administrator
	before func(db string) error   // is called with the name of the first database; nil: nothing is to be done
	known  func(title string) bool // which steps are known to differ; nil: none
	copies bool                    // the server may keep more copies of a shard than the one that answered
	nodes  []*url.URL              // of the cluster that the server belongs to; nil: it stands alone
	again  bool                    // it leaves the server as it was, and may be replayed once more
}

// replay runs the steps of a transcript and drops the databases that they made.
func replay(ctx context.Context, f transcript) []report {
	base, before := f.base, f.before
	steps := parse(f.text)
	n := newNames(steps)
	n.value["host"] = base.Host
	if before != nil {
		if err := before(n.value["db"]); err != nil {
			return []report{{title: "before the first step", diffs: []string{err.Error()}}}
		}
	}
	learnNodes(ctx, base, n)
	reports, short := make([]report, 0, len(steps)), shortHistories(f.text)
	for _, s := range steps {
		if poll := s.seconds("poll", 0); poll > 0 {
			s.opts["poll"] = strconv.FormatFloat(max(poll, persistent), 'f', -1, 64)
			if f.known != nil && f.known(s.title) {
				s.opts["poll"] = strconv.Itoa(hopeless)
			}
		}
		s.copies = f.copies
		r := report{title: s.title, method: s.method, path: s.path}
		if err := settle(ctx, f.nodes, s, n, short); err != nil {
			r.diffs = append(r.diffs, err.Error())
		}
		r.diffs = append(r.diffs, runStep(ctx, base, s, n)...)
		if err := settle(ctx, f.nodes, s, n, short); err != nil {
			r.diffs = append(r.diffs, err.Error())
		}
		reports = append(reports, r)
	}
	for i := 5; i > 0; i-- {
		name := "db"
		if i > 1 {
			name = fmt.Sprintf("db%d", i)
		}
		drop := &step{method: http.MethodDelete, path: "/{{" + name + "}}"}
		_, _ = send(ctx, base, drop, n) // not every transcript makes all five
	}
	return reports
}

// learnNodes names the nodes of the cluster: node is the one that answers.
func learnNodes(ctx context.Context, base *url.URL, n *names) {
	get := func(path string) object {
		a, err := send(ctx, base, &step{method: http.MethodGet, path: path}, n)
		if err != nil {
			return nil
		}
		v, _ := decode(string(a.body)) // no object without an answer in JSON
		o, _ := v.(object)
		return o
	}
	if v, ok := get("/_node/_local").get("name"); ok {
		n.value["node"], _ = v.(string)
	}
	members, _ := get("/_membership").get("cluster_nodes")
	list, _ := members.([]any)
	others := []string{"node2", "node3"}
	for _, m := range list {
		if name, ok := m.(string); ok && name != n.value["node"] && len(others) > 0 {
			n.value[others[0]] = name
			others = others[1:]
		}
	}
}

// runStep returns the differences, after as many tries as the step allows.
func runStep(ctx context.Context, base *url.URL, s *step, n *names) []string {
	if pause.For(ctx, s.span("sleep")) != nil {
		return []string{ctx.Err().Error()}
	}
	bookmarks := n.count["bookmark"]
	deadline := time.Now().Add(s.span("poll"))
	for {
		n.count["bookmark"] = bookmarks
		diffs, err := checkStep(ctx, base, s, n)
		if err != nil {
			diffs = []string{"not run: " + err.Error()}
		}
		if len(diffs) == 0 || !time.Now().Before(deadline) || pause.For(ctx, tryAgain) != nil {
			return diffs
		}
	}
}

// meanwhile sends another request while a step waits: "SECONDS METHOD /path [body]".
// The channel is closed when it was answered.
func meanwhile(ctx context.Context, base *url.URL, what string, n *names) (<-chan struct{}, error) {
	what, err := n.fill(what, same)
	if err != nil {
		return nil, err
	}
	parts := append(strings.SplitN(what, " ", 4), "")
	wait := &step{opts: map[string]string{"wait": parts[0]}}
	other := &step{method: parts[1], path: parts[2], body: parts[3]}
	// it must not touch the names that the step itself is giving meanwhile
	fixed := &names{value: map[string]string{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if pause.For(ctx, wait.span("wait")) == nil {
			_, _ = send(ctx, base, other, fixed) // its effect shows in the step's answer
		}
	}()
	return done, nil
}

func checkStep(ctx context.Context, base *url.URL, s *step, n *names) ([]string, error) {
	if s.has("during") {
		done, err := meanwhile(ctx, base, s.opts["during"], n)
		if err != nil {
			return nil, err
		}
		defer func() { <-done }()
	}
	a, err := send(ctx, base, s, n)
	if err != nil {
		return nil, err
	}
	captureNames(s, a, n)
	headers := normalHeaders(s, a, n)
	body, err := normalBody(s, a, n)
	if err != nil {
		return nil, err
	}
	if s.has("fails") {
		if a.status < 400 {
			return []string{fmt.Sprintf("status: want an error, got %d", a.status)}, nil
		}
		return nil, nil
	}
	d := &differ{unordered: s.list("unordered"), ignore: s.list("ignore"), copies: s.copies}
	if s.has("unordered") && s.opts["unordered"] == "" {
		d.unordered = []string{""}
	}
	for i := range d.unordered {
		d.unordered[i] = strings.Trim(d.unordered[i], ".")
	}
	other := strings.Fields(strings.ReplaceAll(s.opts["status"], ",", " "))
	if a.status != s.status && !slices.Contains(other, fmt.Sprint(a.status)) {
		d.add("status: want %d, got %d", s.status, a.status)
	}
	for _, h := range s.wantHeaders {
		got, ok := headers[h.name]
		if h.value == "{{any}}" && ok || got == h.value && ok {
			continue
		}
		d.add("header %s: want %q, got %q", h.name, h.value, got)
	}
	if !s.has("status-only") {
		d.same(wantedBody(s), without(body, wildIgnored(s), nil), "")
	}
	return d.out, nil
}

// wantedBody returns the body of the transcript as normalBody would.
func wantedBody(s *step) any {
	if s.has("raw") || s.has("base64") {
		return s.wantBody
	}
	v, err := decode(s.wantBody)
	if err != nil {
		return s.wantBody
	}
	return without(v, wildIgnored(s), nil)
}

func wildIgnored(s *step) [][]string {
	return slices.DeleteFunc(s.paths("ignore"), func(p []string) bool { return !slices.Contains(p, "*") })
}

func normalHeaders(s *step, a *answer, n *names) map[string]string {
	present := s.list("any-headers")
	out := map[string]string{}
	for _, h := range comparedHeaders(s) {
		v, ok := a.headers[h]
		if _, done := out[h]; !ok || done {
			continue
		}
		isPresent := slices.ContainsFunc(present, func(p string) bool { return strings.EqualFold(p, h) })
		switch {
		case isPresent:
			v = "{{any}}"
		case h == "set-cookie":
			v = expires.ReplaceAllString(v, "Expires={{any}}")
		case h == "etag" && !hasRev(v) && !s.has("literal-etag"):
			v = "{{any}}"
		case h == "content-type" && strings.Contains(v, "boundary="):
			v = boundarySub.ReplaceAllString(v, `boundary="{{boundary}}"`)
		}
		out[h] = n.norm(v)
	}
	return out
}

func hasRev(text string) bool {
	found := false
	replaceTokens(text, matchRev, func(rev, _ string) string { found = true; return rev })
	return found
}
