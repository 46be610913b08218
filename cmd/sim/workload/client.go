// Package workload is the clients of a test of a cluster: they do random
// things through random nodes and note what they were told.
package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"divan/cmd/sim/history"
)

// Target is a node that can be asked.
type Target struct {
	Name string
	URL  string // http://host:port
}

// Options configures the clients.
type Options struct {
	Log            *history.Log
	Clock          func() time.Duration // since the start of the run
	Targets        func() []Target      // at least one
	HTTP           *http.Client
	User, Password string
	Databases      []string      // that are there and stay
	Temporary      []string      // names of databases that come and go
	Once           string        // prefix of names that are used only once
	Pause          time.Duration // between two requests, on average
	Timeout        time.Duration // of a request
}

// quorum is r and w of databases with three copies.
const quorum = 2

// Client is one client. It is used by one goroutine.
type Client struct {
	Options
	id    int
	rng   *rand.Rand
	known map[string][]string          // by database/id: revisions, the latest last
	paths map[string][]string          // by database/id/rev: its ancestors down to the first, newest first
	atts  map[string]map[string]string // by database/id/rev: name → sum of all attachments
	local int                          // the last number in this client's local document
	page  map[string]history.Since     // by database: where this client is in the feed
}

// New returns client number id of the options.
func New(o Options, id int, rng *rand.Rand) *Client {
	return &Client{
		Options: o, id: id, rng: rng, known: map[string][]string{}, paths: map[string][]string{}, atts: map[string]map[string]string{}, page: map[string]history.Since{},
	}
}

// Run does random things until ctx ends.
func (c *Client) Run(ctx context.Context) {
	for ctx.Err() == nil {
		c.Step(ctx)
		wait := time.NewTimer(time.Duration(c.rng.Int64N(int64(2 * c.Pause))))
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
}

// Step does one random thing.
func (c *Client) Step(ctx context.Context) {
	works := []struct {
		weight int
		do     func(ctx context.Context, db string)
	}{
		{22, c.put},
		{5, c.remove},
		{8, c.bulk},
		{6, c.replicate},
		{8, c.attach},
		{3, c.readAttachment},
		{16, c.read},
		{3, c.readAll},
		{3, c.list},
		{2, c.diff},
		{8, c.view},
		{12, c.changes},
		{4, c.writeLocal},
		{3, c.readLocal},
		{12, c.purge},
		{1, c.compact},
		{14, c.metadata},
	}
	total := 0
	for _, w := range works {
		total += w.weight
	}
	db := c.Databases[c.rng.IntN(len(c.Databases))]
	n := c.rng.IntN(total)
	for _, w := range works {
		if n -= w.weight; n < 0 {
			w.do(ctx, db)
			return
		}
	}
}

// request is one request and its answer.
type request struct {
	history.Span
	target Target
	method string
	path   string
	header map[string]string
	body   []byte
	status int // 0: no answer
	answer []byte
	broken error // the answer broke off

	pause time.Duration // of a feed: how long it may say nothing before it ends
	heard time.Duration // when the newest bytes of the answer came
}

// lively reports whether the answer is a feed that went on to say something
// until the client left it.
func (r *request) lively(err error) bool {
	return r.pause > 0 && r.status == http.StatusOK && errors.Is(err, context.DeadlineExceeded) && r.Return-r.heard <= r.pause+feedSlack
}

// feedSlack is how much later than asked for a feed may end.
const feedSlack = 5 * time.Second

// send makes the request through a random node and notes a failure.
func (c *Client) send(ctx context.Context, r *request) {
	targets := c.Targets()
	r.target = targets[c.rng.IntN(len(targets))]
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	r.Call = c.Clock()
	err := c.exchange(limited, r)
	r.Return = c.Clock()
	if (r.status == 0 || r.status >= 500 || err != nil) && ctx.Err() == nil && !r.lively(err) {
		text := string(r.answer)
		if err != nil {
			text = err.Error()
		}
		c.Log.Note(func(h *history.History) {
			h.Failures = append(h.Failures, history.Failure{
				Span: r.Span, Node: r.target.Name, Request: r.method + " " + r.path, Status: r.status, Text: text[:min(len(text), 300)],
			})
		})
	}
	r.broken = err
}

func (c *Client) exchange(ctx context.Context, r *request) error {
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.target.URL+r.path, body)
	if err != nil {
		return err
	}
	req.SetBasicAuth(c.User, c.Password)
	req.Header.Set("Accept", "application/json")
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read to its end, or broken
	r.status = res.StatusCode
	r.answer, err = io.ReadAll(&listener{res.Body, func() { r.heard = c.Clock() }})
	return err
}

// listener tells of each piece that is read.
type listener struct {
	io.Reader
	heard func()
}

// Read implements io.Reader.
func (l *listener) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n > 0 {
		l.heard()
	}
	return n, err
}

// call sends a request with a JSON body, nil for none, and decodes the answer
// when there is one with a status below 500.
func (c *Client) call(ctx context.Context, method, path string, in, out any) *request {
	r := &request{method: method, path: path}
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			panic(err) // a type of this package
		}
		r.body = text
	}
	c.send(ctx, r)
	if out != nil && r.broken == nil && r.status > 0 && r.status < 500 {
		if err := json.Unmarshal(r.answer, out); err != nil {
			c.wrong("%s %s through %s: %d %.200s: %v", method, path, r.target.Name, r.status, r.answer, err)
		}
	}
	return r
}

// wrong notes something that must never be.
func (c *Client) wrong(format string, args ...any) {
	c.Log.Note(func(h *history.History) { h.Wrong = append(h.Wrong, fmt.Sprintf(format, args...)) })
}

// unexpected notes an answer that the request cannot have.
func (c *Client) unexpected(r *request) {
	c.wrong("%s %s through %s at %v: %d %.200s", r.method, r.path, r.target.Name, r.Call, r.status, r.answer)
}

// learn remembers a revision as the latest that this client knows.
func (c *Client) learn(db, id string, revs ...string) {
	const keep = 6
	key := db + "/" + id
	all := append(c.known[key], revs...)
	c.known[key] = all[max(0, len(all)-keep):]
}

// remember notes the ancestors of a revision if they are all there: histories
// that were cut cannot be joined again on every copy.
func (c *Client) remember(db, id, rev string, ancestors []string) {
	first := rev
	if len(ancestors) > 0 {
		first = ancestors[len(ancestors)-1]
	}
	if strings.HasPrefix(first, "1-") {
		c.paths[db+"/"+id+"/"+rev] = ancestors
	}
}

// parent chooses the revision to name in an edit: mostly the latest, sometimes
// an old one or none.
func (c *Client) parent(db, id string) string {
	revs := c.known[db+"/"+id]
	switch {
	case len(revs) == 0 || c.rng.IntN(12) == 0:
		return ""
	case c.rng.IntN(8) == 0:
		return revs[c.rng.IntN(len(revs))]
	}
	return revs[len(revs)-1]
}

// documents is how many documents several clients write.
const documents = 12

// someDoc is a document that several clients write.
func (c *Client) someDoc() string { return fmt.Sprint("d", c.rng.IntN(documents)) }
