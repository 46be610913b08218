package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"divan/replicator/endpoint"
	"divan/replicator/spec"
	"divan/storage/fault"
	"divan/storage/memory"
	"divan/storage/pause"
)

// client sends requests to the server of a database, on one account.
type client struct {
	net       *Network
	url       string // of the database, with a slash at its end, and without credentials
	base      *url.URL
	host      string // for limiters: scheme and host
	proxy     *url.URL
	headers   [][2]string
	session   *session // nil: without an account
	options   spec.Options
	userAgent string
	slots     chan struct{} // has an entry for each request under way
	memory    *memory.Owner
}

func newClient(o *Options) (*client, error) {
	base, err := url.Parse(o.Address.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fault.Newf(fault.BadRequest, "%q is no address of a database", o.Address.URL)
	}
	c := &client{
		net: o.Network, url: strings.TrimRight(o.Address.URL, "/") + "/", base: base,
		host: base.Scheme + "://" + base.Host, headers: o.Address.Headers,
		options: o.Options, userAgent: o.UserAgent, memory: o.Memory,
	}
	if o.Address.Proxy != "" {
		if c.proxy, err = url.Parse(o.Address.Proxy); err != nil {
			return nil, fault.New(fault.BadRequest, "the proxy has no proper address")
		}
	}
	c.options.Connections = max(1, c.options.Connections)
	if c.options.ConnectionTimeout <= 0 {
		c.options.ConnectionTimeout = dialTimeout
	}
	c.slots = make(chan struct{}, c.options.Connections)
	if o.Address.Username != "" || o.Address.Password != "" {
		c.session = c.net.openSession(sessionKey{c.root(), o.Address.Username, o.Address.Password, o.Address.Proxy})
	}
	return c, nil
}

// root is the URL of the server: what is above the database.
func (c *client) root() string {
	return c.url[:strings.LastIndexByte(strings.TrimRight(c.url, "/"), '/')+1]
}

// The limits of answers that are read as a whole, in bytes: of the description of a database, and
// for each byte of the request. A server may compress an answer of any size to nearly nothing.
const (
	maxAnswer        = 1 << 20
	maxAnswerPerByte = 64
)

// readAll reads up to limit bytes, which are counted as they come.
func readAll(ctx context.Context, hold *memory.Hold, r io.Reader, limit int) ([]byte, error) {
	buf := make([]byte, 0, streamStart)
	for {
		giveWay(cap(buf))
		n, err := r.Read(buf[len(buf):min(cap(buf), len(buf)+streamMost)])
		buf = buf[:len(buf)+n]
		if len(buf) > limit {
			return nil, tooLong("the answer", limit)
		}
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) < cap(buf) {
			continue
		}
		size := min(2*cap(buf), max(limit, cap(buf))+1)
		if err := hold.Take(ctx, endpoint.MemoryFactor*int64(size-cap(buf))); err != nil {
			return nil, endpoint.NoMemory("the answer", err)
		}
		buf = enlarged(buf, size)
	}
}

// read asks, and returns the whole of an answer of success. The status tells
// what else it was; then text is nil and the answer is open. It asks again when an
// answer breaks off, as do does when there is none.
func (c *client) read(ctx context.Context, q *request) (text []byte, a *answer, err error) {
	for broken := 0; ; broken++ {
		if a, err = c.do(ctx, q); err != nil {
			return nil, nil, err
		}
		if a.status >= http.StatusMultipleChoices {
			return nil, a, nil
		}
		if text, err = c.readAnswer(ctx, q, a); err == nil {
			return text, a, nil
		}
		if errors.Is(err, memory.ErrFull) || errors.Is(err, memory.ErrNever) {
			return nil, nil, err
		}
		if ctx.Err() != nil || errors.Is(err, errLong) || q.stream != nil || broken >= c.options.Retries {
			return nil, nil, unread("the answer to "+q.method+" "+c.url+q.path, err)
		}
		if err := pause.For(ctx, min(retryFirst<<min(broken, 20), retryMost)); err != nil {
			return nil, nil, err
		}
	}
}

// readAnswer reads the whole of an answer and closes it.
func (c *client) readAnswer(ctx context.Context, q *request, a *answer) ([]byte, error) {
	hold := q.hold
	if hold == nil {
		own := c.memory.Hold()
		defer own.Release()
		hold = &own
	}
	hold.Release() // of an answer that broke off
	text, err := readAll(ctx, hold, a.Body, max(q.limit, maxAnswer)+maxAnswerPerByte*len(q.body))
	return text, errors.Join(err, a.Body.Close())
}

// unopened is the error of an answer that says that the database cannot be
// used.
func (c *client) unopened(a *answer) error {
	err := c.refusal(a)
	var f *fault.Error
	switch {
	case errors.As(err, &f) && f.Code == endpoint.CodeAuth, a.status >= http.StatusInternalServerError, a.status == http.StatusTooManyRequests:
		return err
	case a.status == http.StatusUnauthorized:
		return endpoint.Unauthorized(c.url)
	case a.status == http.StatusForbidden:
		return endpoint.Forbidden(c.url)
	}
	return endpoint.NoDatabase(c.url)
}

// heartbeat is how often a feed shows a sign of life.
func (c *client) heartbeat(asked time.Duration) time.Duration {
	most := c.options.ConnectionTimeout / 3
	if asked <= 0 {
		return most
	}
	return min(asked, most)
}
