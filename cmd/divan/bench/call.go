package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// call is one client's request and response, used again and again.
type call struct {
	b    *bench
	req  *fasthttp.Request
	resp *fasthttp.Response
	buf  []byte
}

func (b *bench) newCall() *call {
	return &call{b: b, req: fasthttp.AcquireRequest(), resp: fasthttp.AcquireResponse(), buf: make([]byte, 64<<10)}
}

func (a *call) release() {
	fasthttp.ReleaseRequest(a.req)
	fasthttp.ReleaseResponse(a.resp)
}

func (a *call) status() int { return a.resp.StatusCode() }

// do sends a request with a JSON body, nil for none.
func (a *call) do(method, path string, body []byte) error {
	a.prepare(method, path)
	if body != nil {
		a.req.Header.SetContentType("application/json")
		a.req.SetBodyRaw(body)
	}
	return a.b.client.Do(a.req, a.resp)
}

// doStream sends a request whose body is read from r.
func (a *call) doStream(path string, r io.Reader, size int64) error {
	a.prepare(fasthttp.MethodPut, path)
	a.req.Header.SetContentType("application/octet-stream")
	a.req.SetBodyStream(r, int(size))
	return a.b.client.Do(a.req, a.resp)
}

func (a *call) prepare(method, path string) {
	a.req.Reset()
	a.resp.Reset()
	a.resp.StreamBody = true
	a.req.Header.SetMethod(method)
	a.req.Header.SetHost(a.b.client.Addr)
	a.req.URI().DisablePathNormalizing = true
	a.req.SetRequestURI(path)
	if a.b.auth != "" {
		a.req.Header.Set("Authorization", a.b.auth)
	}
}

// text reads the whole body; only for small ones.
func (a *call) text() ([]byte, error) {
	if a.resp.BodyStream() == nil {
		return a.resp.Body(), nil
	}
	return io.ReadAll(a.resp.BodyStream())
}

// drain reads the body and returns its size and the number of its line ends.
func (a *call) drain() (size, lines int64, err error) {
	if a.resp.BodyStream() == nil {
		body := a.resp.Body()
		return int64(len(body)), int64(bytes.Count(body, []byte{'\n'})), nil
	}
	for {
		n, err := a.resp.BodyStream().Read(a.buf)
		size += int64(n)
		lines += int64(bytes.Count(a.buf[:n], []byte{'\n'}))
		if errors.Is(err, io.EOF) {
			return size, lines, a.resp.CloseBodyStream()
		}
		if err != nil {
			return size, lines, err
		}
	}
}

// expect returns an error unless the status is one of those.
func (a *call) expect(statuses ...int) error {
	for _, s := range statuses {
		if a.status() == s {
			return nil
		}
	}
	body, err := a.text()
	if err != nil {
		body = []byte(err.Error())
	}
	return fmt.Errorf("status %d: %.200s", a.status(), body)
}

// exchange sends a request with a JSON body, nil for none, and reads the
// answer, which must have one of the statuses. It returns the size of the
// answer's body and the number of its line ends.
func (a *call) exchange(method, path string, body []byte, statuses ...int) (size, lines int64, err error) {
	if err := a.do(method, path, body); err != nil {
		return 0, 0, err
	}
	return a.finish(statuses...)
}

// finish is exchange from the answer on.
func (a *call) finish(statuses ...int) (size, lines int64, err error) {
	if err := a.expect(statuses...); err != nil {
		return 0, 0, err
	}
	return a.drain()
}

// client is one of the parallel clients of a workload: it is called with a
// growing number until it returns io.EOF. It returns how much it got done.
type client func(a *call, i int64) (done int64, err error)

// parallel runs the clients until ctx ends or each has returned io.EOF. Failed
// requests are counted; the first error of all is returned when nothing at all
// succeeded.
func (b *bench) parallel(ctx context.Context, clients int, r *recorder, newClient func(nr int) client) error {
	var wg sync.WaitGroup
	errs := make([]error, clients)
	if err := r.begin(); err != nil {
		return err
	}
	for nr := range clients {
		wg.Go(func() { errs[nr] = b.oneClient(ctx, r, newClient(nr)) })
	}
	wg.Wait()
	if r.count.Load() == 0 {
		return errors.Join(errs...)
	}
	return nil
}

// oneClient returns the first error that the client met.
func (b *bench) oneClient(ctx context.Context, r *recorder, work client) error {
	a := b.newCall()
	defer a.release()
	h := histogram()
	defer func() { r.merge(h) }()
	var first error
	for i := int64(0); ctx.Err() == nil; i++ {
		start := time.Now()
		n, err := work(a, i)
		switch {
		case errors.Is(err, io.EOF):
			return first
		case err != nil:
			if r.errors.Add(1) > 1000 {
				return err
			}
			if first == nil {
				first = err
			}
			continue
		}
		r.count.Add(n)
		if err := h.RecordValue(min(time.Since(start).Microseconds(), h.HighestTrackableValue())); err != nil {
			return fmt.Errorf("record a latency: %w", err)
		}
	}
	return first
}
