package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The workloads of small requests have a client of their own. A goroutine and a
// fasthttp call for each of the requests under way would cost as much processor
// time as the server does, and on one machine with it the bench would measure
// itself. Here few loops own the connections: each connection is a lane, which
// has at most one request under way and sends the next one as soon as its
// answer is complete, whatever the others do.

// script says what one lane asks and what it thinks of the answers.
type script struct {
	// next appends the next request to dst.
	next func(dst []byte) []byte
	// judge says how much the answer got done.
	judge func(a *answer) (int64, error)
}

// lane is one connection and its request.
type lane struct {
	script  script
	request []byte
	sent    int // bytes of the request
	start   time.Time
	answer  answer
	index   int // in crew.lanes
	fd      int // of the socket; -1 while there is none, unused by plain
}

// crew is the lanes that one loop drives.
type crew struct {
	to       target
	r        *recorder
	lanes    []*lane
	latency  *hdrhistogram.Histogram
	first    error         // that a request met
	patience time.Duration // with one request
}

// target is the server as the lanes see it.
type target struct {
	addr   *net.TCPAddr
	common string // headers of every request
}

// errSlow is the error of a request without an answer in time.
var errSlow = errors.New("no answer in time")

// errMore is the error of bytes after the answer.
var errMore = errors.New("more than an answer came")

// maxErrors is how many requests may fail before the lanes give up.
const maxErrors = 1000

// dial finds out which of the server's addresses answers.
func (b *bench) dial(ctx context.Context) (target, error) {
	u, err := url.Parse("http://" + b.client.Addr)
	if err != nil {
		return target{}, fmt.Errorf("the server's address: %w", err)
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return target{}, err
	}
	defer func() { _ = conn.Close() }()
	addr, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return target{}, fmt.Errorf("the server's address: %s is none of TCP", conn.RemoteAddr())
	}
	common := " HTTP/1.1\r\nHost: " + b.client.Addr + "\r\n"
	if b.auth != "" {
		common += "Authorization: " + b.auth + "\r\n"
	}
	return target{addr, common}, nil
}

// lanes runs as many lanes as there are clients until ctx ends; the requests
// that are under way then are finished, unless ctx was cancelled. Failed
// requests are counted; an error is returned when nothing at all succeeded.
// newScript is called with the number of the lane.
func (b *bench) lanes(ctx context.Context, r *recorder, newScript func(to target, nr int) script) error {
	to, err := b.dial(ctx)
	if err != nil {
		return err
	}
	crews := make([]*crew, min(loops(b.cfg), b.cfg.Clients))
	for i := range crews {
		crews[i] = &crew{to: to, r: r, latency: histogram(), patience: b.patience}
	}
	for nr := range b.cfg.Clients {
		crews[nr%len(crews)].add(newScript(to, nr))
	}
	var wg sync.WaitGroup
	errs := make([]error, len(crews))
	if err := r.begin(); err != nil {
		return err
	}
	for i, c := range crews {
		wg.Go(func() { errs[i] = c.run(ctx) })
	}
	wg.Wait()
	for i, c := range crews {
		r.merge(c.latency)
		errs[i] = errors.Join(errs[i], c.first)
	}
	if r.count.Load() == 0 {
		return errors.Join(errs...)
	}
	return nil
}

func (c *crew) add(s script) {
	n := &lane{script: s, index: len(c.lanes), fd: -1}
	n.answer.keep = 200 // for the message when the server refuses
	c.lanes = append(c.lanes, n)
}

// prepare makes the lane's next request, unless it is time to stop.
func (c *crew) prepare(ctx context.Context, n *lane) bool {
	if ctx.Err() != nil || c.r.errors.Load() > maxErrors {
		return false
	}
	n.request, n.sent = n.script.next(n.request[:0]), 0
	n.answer.reset()
	n.start = time.Now()
	return true
}

// take takes bytes that the server sent. It reports whether the answer is
// complete; then it has counted it.
func (c *crew) take(n *lane, p []byte) (bool, error) {
	rest, err := n.answer.feed(p)
	if err == nil && len(rest) > 0 {
		err = errMore
	}
	if err != nil || !n.answer.done() {
		return false, err
	}
	return true, c.count(n)
}

// end says that the server has closed the connection. An error is that it must
// not have done so; otherwise the answer is complete and counted.
func (c *crew) end(n *lane) error {
	if err := n.answer.end(); err != nil {
		return err
	}
	return c.count(n)
}

// count records an answer. A refusal counts as a failure, but leaves the
// connection as it is.
func (c *crew) count(n *lane) error {
	took := time.Since(n.start)
	done, err := n.script.judge(&n.answer)
	if err != nil {
		c.failed(err)
		return nil
	}
	c.r.count.Add(done)
	return c.latency.RecordValue(min(took.Microseconds(), c.latency.HighestTrackableValue()))
}

// failed counts a failure.
func (c *crew) failed(err error) {
	c.r.errors.Add(1)
	if c.first == nil {
		c.first = err
	}
}

// want is an error unless the answer has that status.
func (a *answer) want(status int) error {
	if a.status != status {
		return fmt.Errorf("status %d: %.200s", a.status, a.body)
	}
	return nil
}

// appendGet appends a request for a path without its first slash.
func (t *target) appendGet(dst, path []byte) []byte {
	dst = append(append(dst, http.MethodGet+" /"...), path...)
	return append(append(dst, t.common...), "\r\n"...)
}

// appendPut appends a request that writes a JSON body to a path of two parts.
func (t *target) appendPut(dst []byte, path string, id, body []byte) []byte {
	dst = append(append(append(dst, http.MethodPut+" "...), path...), id...)
	dst = append(append(dst, t.common...), "Content-Type: application/json\r\nContent-Length: "...)
	dst = append(strconv.AppendInt(dst, int64(len(body)), 10), "\r\n\r\n"...)
	return append(dst, body...)
}
