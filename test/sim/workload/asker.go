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
	"net/url"
	"strconv"
	"strings"
	"time"

	"divan/test/sim/history"
)

// asker sends the requests of a client through random nodes, and notes what fails.
type asker struct {
	Options
	id  int // of the client
	rng *rand.Rand
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
func (c *asker) send(ctx context.Context, r *request) {
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

func (c *asker) exchange(ctx context.Context, r *request) error {
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
func (c *asker) call(ctx context.Context, method, path string, in, out any) *request {
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
func (c *asker) wrong(format string, args ...any) {
	c.Log.Note(func(h *history.History) { h.Wrong = append(h.Wrong, fmt.Sprintf(format, args...)) })
}

// unexpected notes an answer that the request cannot have.
func (c *asker) unexpected(r *request) {
	c.wrong("%s %s through %s at %v: %d %.200s", r.method, r.path, r.target.Name, r.Call, r.status, r.answer)
}

// documents is how many documents several clients write.
const documents = 12

// someDoc is a document that several clients write.
func (c *asker) someDoc() string { return fmt.Sprint("d", c.rng.IntN(documents)) }

// copies adds a random w or r to a query, and returns it.
func (c *asker) copies(name string, q url.Values) int {
	if c.rng.IntN(3) > 0 {
		return quorum
	}
	n := 1 + c.rng.IntN(3)
	q.Set(name, strconv.Itoa(n))
	return n
}

func (c *asker) pad() string { return strings.Repeat("x", c.rng.IntN(400)) }

func (c *asker) revID() string { return fmt.Sprintf("%016x%016x", c.rng.Uint64(), c.rng.Uint64()) }
