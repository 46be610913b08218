package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"divan/storage/fault"
	"divan/storage/memory"
	"divan/storage/pause"
)

const (
	// retryFirst is how long a request waits before its second attempt; it
	// doubles with each further one, up to retryMost.
	retryFirst = 250 * time.Millisecond
	retryMost  = 5 * time.Minute
	// patience is how many times the connection timeout a server may work
	// before it begins to answer.
	patience = 4
	// maxRedirects is how many redirections a request follows.
	maxRedirects = 10
)

// request is a request to a database.
type request struct {
	method string
	path   string // behind the database's URL, escaped
	query  string
	body   []byte // JSON
	limit  int    // of an answer that is read as a whole, in bytes, if not maxAnswer
	// hold counts such an answer beyond the reading of it; nil: it is a small one.
	hold   *memory.Hold
	accept string // empty: application/json
	// stream is a body that is sent once, of size bytes and that type.
	stream     io.ReadCloser
	streamType string
	size       int64
	// feed: an answer without end, which takes no part in the limit of
	// connections, comes as it is made and shows signs of life.
	feed bool
	asIs bool // no compression for the transport: it would look like the content's own
}

// rootPath stands for the server's root, which is not behind the database's URL.
const rootPath = ".."

// answer is the server's answer to a request. The caller that gets one closes its Body.
type answer struct {
	status int
	header http.Header
	Body   io.ReadCloser
}

// do asks, repeats what is worth repeating, and returns the last answer. An
// error says that there was none.
func (c *client) do(ctx context.Context, q *request) (*answer, error) {
	release := func() {}
	if !q.feed {
		select {
		case c.slots <- struct{}{}:
			release = func() { <-c.slots }
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	a, err := c.persist(ctx, q)
	if err != nil {
		release()
		return nil, err
	}
	a.Body.(*download).release = release //nolint:forcetypeassert // once makes no other
	return a, nil
}

// persist makes the attempts that a request is worth.
func (c *client) persist(ctx context.Context, q *request) (*answer, error) {
	try := attempts{client: c, left: c.options.Retries, where: c.url + q.path}
	if q.path == rootPath {
		try.where = c.root()
	}
	if q.query != "" {
		try.where += "?" + q.query
	}
	for {
		if l := c.net.limiterOf(c.host); l != nil {
			if err := try.slow(ctx, l.delay()); err != nil {
				return nil, err
			}
		}
		a, cookie, err := c.once(ctx, q, try.where)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err = try.failed(ctx, q, err); err != nil {
				return nil, err
			}
			continue
		}
		again, err := try.judge(ctx, q, a, cookie)
		if err != nil {
			return nil, errors.Join(err, a.Body.Close())
		}
		if !again {
			return a, nil
		}
		if err := a.Body.Close(); err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := pause.For(ctx, try.wait); err != nil {
			return nil, err
		}
	}
}

// attempts is how often a request was made and what for.
type attempts struct {
	client    *client
	where     string
	left      int           // attempts
	made      int           // failed ones
	wait      time.Duration // before the next one
	slowed    time.Duration // waited for an overloaded host
	redirects int
	loggedIn  bool // again, for this request
}

// slow waits for an overloaded host.
func (t *attempts) slow(ctx context.Context, d time.Duration) error {
	if t.slowed += d; t.slowed > slowEnough {
		return fault.Newf(fault.Unavailable, "%s takes no more requests for now", t.client.url)
	}
	return pause.For(ctx, d)
}

// next counts a failed attempt; false when that was the last one.
func (t *attempts) next(q *request) bool {
	if t.left <= 0 || q.stream != nil {
		return false
	}
	t.wait = min(retryFirst<<min(t.made, 20), retryMost)
	t.left--
	t.made++
	return true
}

// failed waits for another attempt after one without an answer.
func (t *attempts) failed(ctx context.Context, q *request, err error) error {
	if !t.next(q) {
		kind := fault.Unavailable
		if errors.Is(err, errSilent) {
			kind = fault.Timeout
		}
		return fault.Wrap(kind, q.method+" "+t.client.url+q.path+" got no answer ("+cause(err)+")", err)
	}
	return pause.For(ctx, t.wait)
}

// unread is the error of an answer that was not read to its end.
func unread(what string, err error) error {
	return fault.Wrap(fault.Unavailable, what+" cannot be read ("+cause(err)+")", err)
}

// cause returns the reason that a user needs to see when the address they gave does not answer as
// it should.
func cause(err error) string {
	if reason := fault.Reason(err); reason != "" {
		return reason
	}
	var operation *net.OpError
	if errors.As(err, &operation) && (operation.Op == "proxyconnect" || operation.Op == "socks connect") {
		return "its proxy: " + cause(operation.Err)
	}
	var name *net.DNSError
	var system *os.SyscallError
	switch {
	case errors.As(err, &name):
		return name.Err
	case errors.As(err, &system):
		return system.Err.Error()
	}
	return err.Error()
}

// judge decides whether an answer is the last one.
func (t *attempts) judge(ctx context.Context, q *request, a *answer, cookie string) (again bool, err error) {
	t.wait = 0
	switch code := a.status; {
	case code == http.StatusTooManyRequests:
		t.client.net.overloaded(t.client.host)
		if q.stream != nil {
			return false, nil
		}
		return true, t.slow(ctx, retryAfter(a.header))
	case code == http.StatusRequestTimeout, code >= http.StatusInternalServerError && code != http.StatusNotImplemented:
		if !t.next(q) {
			return false, nil
		}
		t.wait = max(t.wait, min(retryAfter(a.header), retryMost))
		return true, nil
	}
	t.client.net.answered(t.client.host)
	switch a.status {
	case http.StatusUnauthorized:
		if t.loggedIn || t.client.session == nil || !t.client.session.expire(cookie) {
			return false, nil
		}
		if q.stream != nil { // this is no judgement of the document
			return false, fault.Newf(fault.Unavailable, "the session at %s has ended", t.client.url)
		}
		t.loggedIn = true
		return true, nil
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return t.redirected(q, a)
	}
	return false, nil
}

// redirected follows a redirection. As with CouchDB the method stays.
func (t *attempts) redirected(q *request, a *answer) (bool, error) {
	if q.stream != nil || a.header.Get("Location") == "" {
		return false, nil
	}
	if t.redirects++; t.redirects > maxRedirects {
		return false, fault.Newf(fault.Unavailable, "%s redirects in circles", t.client.url)
	}
	from, err := url.Parse(t.where)
	if err == nil {
		from, err = from.Parse(a.header.Get("Location"))
	}
	if err != nil {
		return false, fault.Wrap(fault.Unavailable, t.client.url+" redirects to no address", err)
	}
	if strings.HasPrefix(t.where, "https:") && from.Scheme != "https" {
		return false, fault.Newf(fault.Unavailable, "%s redirects to an address without TLS", t.client.url)
	}
	t.where = from.String()
	if a.status == http.StatusSeeOther && q.method != http.MethodHead {
		q.method, q.body = http.MethodGet, nil
	}
	return true, nil
}

// retryAfter is how long the server wants to be left alone.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// once makes one attempt. It returns the session's cookie that was sent with it.
func (c *client) once(ctx context.Context, q *request, where string) (*answer, string, error) {
	w := watch(context.WithValue(ctx, proxyKey{}, c.proxy), c.options.ConnectionTimeout)
	ended := false
	defer func() {
		if !ended {
			w.close()
		}
	}()
	r, err := c.build(w, q, where)
	if err != nil {
		return nil, "", err
	}
	cookie, err := c.authorize(w, r)
	if err != nil {
		return nil, "", w.cause(err)
	}
	got, err := c.send(w, r, q.feed) //nolint:bodyclose // the answer's Body closes it
	if err != nil {
		return nil, "", w.cause(err)
	}
	if c.session != nil && c.home(r.URL) {
		c.session.renewed(got)
		if got.StatusCode != http.StatusUnauthorized {
			c.session.accepted(cookie)
		}
	}
	ended = true
	body := &download{body: got.Body, w: w, limit: c.options.ConnectionTimeout}
	return &answer{status: got.StatusCode, header: got.Header, Body: body}, cookie, nil
}

// send makes one round trip. Once the connection stands, the server has time.
func (c *client) send(w *watchdog, r *http.Request, feed bool) (*http.Response, error) {
	limit := c.options.ConnectionTimeout
	if !feed {
		limit *= patience
	}
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		c.net.figures.ConnectionsUsed.Add(1)
		w.moved(limit)
	}})
	got, err := c.net.transport.RoundTrip(r.WithContext(ctx))
	w.pause()
	status := 0
	if err == nil {
		status = got.StatusCode
	}
	c.net.figures.answered(feed, status, err)
	return got, err
}

// build makes the request without what says who asks.
func (c *client) build(w *watchdog, q *request, where string) (*http.Request, error) {
	var body io.Reader
	switch {
	case q.stream != nil:
		body = &upload{q.stream, w, patience * c.options.ConnectionTimeout}
	case q.body != nil:
		body = bytes.NewReader(q.body)
	}
	r, err := http.NewRequestWithContext(w.ctx, q.method, where, body)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	h := r.Header
	h["User-Agent"] = []string{c.userAgent}
	switch {
	case q.stream != nil:
		h.Set("Content-Type", q.streamType)
		r.ContentLength = q.size
	case q.body != nil:
		h["Content-Type"] = []string{"application/json"}
	}
	h["Accept"] = []string{"application/json"}
	if q.accept != "" {
		h["Accept"] = []string{q.accept}
	}
	if q.feed || q.asIs { // a compressor on the way would hold rows and signs of life back
		h["Accept-Encoding"] = []string{"identity"}
	}
	return r, nil
}

// home reports whether a request goes to the server of the database, and not
// where that one sent it to.
func (c *client) home(u *url.URL) bool { return u.Host == c.base.Host && u.Scheme == c.base.Scheme }

// authorize adds what says who asks, to requests to the database's own server.
func (c *client) authorize(w *watchdog, r *http.Request) (string, error) {
	if !c.home(r.URL) {
		return "", nil
	}
	for _, h := range c.headers {
		r.Header.Add(h[0], h[1])
	}
	if c.session == nil {
		return "", nil
	}
	cookie, err := c.session.login(w.ctx, func(login *http.Request) (*http.Response, error) {
		login.Header["User-Agent"] = []string{c.userAgent}
		answer, err := c.send(w, login, true)
		w.moved(c.options.ConnectionTimeout) // while the answer is read
		return answer, err
	})
	if err != nil {
		return "", err
	}
	if cookie == "" {
		r.SetBasicAuth(c.session.user, c.session.password)
		return "", nil
	}
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: cookie})
	r.Header.Set("X-CouchDB-WWW-Authenticate", "Cookie")
	return cookie, nil
}
