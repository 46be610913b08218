package bench

import (
	"bytes"
	"fmt"
	"io"
	"slices"

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

// want fails when the beginning of the last answer does not contain part.
func (a *call) want(part string) error {
	if !bytes.Contains(a.body.start, []byte(part)) {
		return fmt.Errorf("no %s in the answer: %s", part, a.body.start)
	}
	return nil
}
