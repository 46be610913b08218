package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// call is one client's request and response, used again and again.
type call struct {
	client   *fasthttp.HostClient
	constant *fasthttp.HostClient // of the constant handler, which is asked in place of the server; nil: the server is asked
	req      *fasthttp.Request
	resp     *fasthttp.Response
	body     body // of the last answer
}

func (b *bench) newCall() *call {
	a := &call{client: b.client, req: fasthttp.AcquireRequest(), resp: fasthttp.AcquireResponse()}
	a.req.Header.SetHost(b.client.Addr)
	if b.auth != "" {
		a.req.Header.Set(fasthttp.HeaderAuthorization, b.auth)
	}
	return a
}

func (a *call) release() {
	fasthttp.ReleaseRequest(a.req)
	fasthttp.ReleaseResponse(a.resp)
}

// do sends a request with a JSON body, nil for none, and reads the answer, whose
// status must be one of those.
func (a *call) do(method string, path, body []byte, statuses ...int) error {
	a.req.Header.SetMethod(method)
	a.req.Header.SetContentType("application/json")
	a.req.SetRequestURIBytes(path)
	a.req.SetBodyRaw(body)
	a.req.Header.Del(fasthttp.HeaderContentLength) // of the request before, which stays when this one has no body
	return a.exchange(statuses)
}

// upload is do for a PUT whose body is read from r.
func (a *call) upload(path []byte, r io.Reader, size int64, statuses ...int) error {
	a.req.Header.SetMethod(fasthttp.MethodPut)
	a.req.Header.SetContentType("application/octet-stream")
	a.req.SetRequestURIBytes(path)
	a.req.SetBodyStream(r, int(size))
	return a.exchange(statuses)
}

func (a *call) exchange(statuses []int) error {
	client := a.client
	if a.constant != nil {
		client = a.constant
	}
	if err := client.Do(a.req, a.resp); err != nil {
		return err
	}
	a.body = body{start: a.body.start[:0]}
	if err := a.resp.BodyWriteTo(&a.body); err != nil {
		return err
	}
	if length := a.resp.Header.ContentLength(); length >= 0 && a.body.size != int64(length) {
		return fmt.Errorf("%d bytes came of %d: %w", a.body.size, length, io.ErrUnexpectedEOF)
	}
	if a.constant != nil {
		return errConstantAnswered
	}
	if !slices.Contains(statuses, a.resp.StatusCode()) {
		return fmt.Errorf("status %d: %s", a.resp.StatusCode(), a.body.start)
	}
	return nil
}

// body is the part of an answer's body that is kept.
type body struct {
	size  int64
	lines int64  // their ends
	start []byte // for the message when the server refuses
}

// Write implements io.Writer.
func (b *body) Write(p []byte) (int, error) {
	b.size += int64(len(p))
	b.lines += int64(bytes.Count(p, []byte{'\n'}))
	b.start = append(b.start, p[:min(len(p), 200-len(b.start))]...)
	return len(p), nil
}

// client is one of the parallel clients of a workload: it is called with a
// growing number until it returns io.EOF. It returns how much it got done.
type client func(a *call, i int64) (done int64, err error)

// timed runs all clients until the time for a workload is up; the requests that
// are under way then are finished.
func (b *bench) timed(ctx context.Context, r *recorder, newClient func(nr int) client) error {
	return b.during(ctx, b.cfg.Duration, r, newClient)
}

func (b *bench) during(ctx context.Context, duration time.Duration, r *recorder, newClient func(nr int) client) error {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return b.parallel(ctx, b.cfg.Clients, r, func(nr int) client {
		work := newClient(nr)
		return func(a *call, i int64) (int64, error) {
			a.req.SetTimeout(b.patience)
			return work(a, i)
		}
	})
}

// parallel runs the clients until ctx ends or each has returned io.EOF. Failed
// requests are counted; the first error of each is returned when nothing at all
// succeeded.
func (b *bench) parallel(ctx context.Context, clients int, r *recorder, newClient func(nr int) client) error {
	if err := r.begin(); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for nr := range clients {
		wg.Go(func() { errs[nr] = b.oneClient(ctx, r, newClient(nr)) })
	}
	wg.Wait()
	err := r.end()
	if r.count.Load() == 0 {
		return errors.Join(append(errs, err)...)
	}
	return err
}

// maxErrors is how many requests may fail before the clients give up.
const maxErrors = 1000

// oneClient returns the first error that the client met.
func (b *bench) oneClient(ctx context.Context, r *recorder, work client) error {
	a := b.newCall()
	defer a.release()
	var first error
	for i := int64(0); ctx.Err() == nil && r.errors.Load() <= maxErrors; i++ {
		start := time.Now()
		n, err := work(a, i)
		switch {
		case errors.Is(err, io.EOF):
			return first
		case err != nil:
			r.errors.Add(1)
			if first == nil {
				first = err
			}
		default:
			if err := r.record(n, time.Since(start)); err != nil {
				return err
			}
		}
	}
	return first
}
