package core

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"divan/storage/fault"
)

// Rewritten is the request that stands in for another one (_rewrite).
type Rewritten struct {
	Method string
	Target string // path and query, escaped
	Header http.Header
	Body   []byte // nil: the body of the request itself, still unread
}

// rewrites is the data that a context has under rewritesKey about a request that stands in
// for another one.
type rewrites struct {
	times     int    // it has been rewritten
	requested string // Call.requested
}

type rewritesKey struct{}

// Rewrite answers with what the API answers to another request, which comes from the
// same client.
func (c *Call) Rewrite(to Rewritten) error {
	u, err := url.ParseRequestURI(to.Target)
	if err != nil {
		return fault.Wrap(fault.BadRequest, "The rewritten path is malformed.", err)
	}
	ctx := c.Request.Context()
	before, _ := ctx.Value(rewritesKey{}).(rewrites)
	r := c.Request.Clone(context.WithValue(ctx, rewritesKey{}, rewrites{before.times + 1, c.requested}))
	r.Method, r.URL, r.RequestURI, r.Header = to.Method, u, to.Target, to.Header
	r.Header.Del("X-HTTP-Method-Override") // it has had its effect
	r.Body = c.Request.Body
	if to.Body != nil {
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(to.Body)), int64(len(to.Body)), nil
		r.Header.Del("Content-Encoding")
		r.Header.Set("Content-Length", strconv.Itoa(len(to.Body)))
	}
	c.Body.streamed = true // this request cannot begin again
	c.Response.resetHeaders()
	c.Response.whole = true
	c.API.ServeHTTP(c.Response, r)
	return nil
}

// CheckRewrites refuses a request that has been rewritten too often.
func (c *Call) CheckRewrites() error {
	if r, _ := c.Request.Context().Value(rewritesKey{}).(rewrites); r.times >= c.Config.Functions.RewriteLimit {
		return fault.New(fault.BadRequest, "Exceeded rewrite recursion limit")
	}
	return nil
}
