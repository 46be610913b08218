package core

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"divan/storage/fault"
)

// Upload is the body of a request whose attachments are stored while they
// come in.
func (b *Body) Upload() io.Reader {
	p := b.patient(b.transferred())
	return &p
}

// Parts is Upload for a body of several parts, whose reader knows
// nothing of HTTP: one above the limit ends with the refusal of it.
func (b *Body) Parts() io.Reader { return limitedBody{b.Upload()} }

type limitedBody struct{ r io.Reader }

// Read implements io.Reader.
func (b limitedBody) Read(buf []byte) (int, error) {
	n, err := b.r.Read(buf)
	if tooMuch := new(http.MaxBytesError); errors.As(err, &tooMuch) {
		err = errTooLong()
	}
	return n, err
}

// Limits of the body of an unauthenticated client: the time to begin it in earnest, and
// the bytes of a body that is for the server and not for a database that is open to all;
// such a body has to arrive whole within that time.
const (
	nobodysGrace = 10 * time.Second
	nobodysBytes = 64 << 10
)

// patient reads a body of this request. A client must not fall silent for
// longer than [couchdb] attachment_writer_timeout, and after a grace has to have
// sent as many bytes as [chttpd] min_body_rate asks for since it began: an
// upload holds a file, a JSON text what came of it, and each of them one of the
// requests that may be under way. What comes faster counts for later pauses.
func (b *Body) patient(r io.Reader) patientReader {
	limits := &b.config.Chttpd.RequestLimits
	p := patientReader{r: r, body: b, patience: b.config.CouchDB.AttachmentWriterTimeout, grace: limits.BodyGrace, rate: limits.MinBodyRate}
	if b.ofStranger() {
		p.grace = min(p.grace, nobodysGrace)
		p.whole = b.target.DBName == ""
	}
	if p.rate == 0 && !p.whole {
		p.grace = 0
	}
	return p
}

// ofStranger reports whether the client is not known, or not yet.
func (b *Body) ofStranger() bool { return b.user.Anonymous || b.user.Name == "" }

// patientReader has a deadline for what it reads, which moves along with what
// comes.
type patientReader struct {
	r        io.Reader
	body     *Body
	patience time.Duration // between two reads, 0: any
	grace    time.Duration // until the rate counts, 0: it never does
	rate     int64         // bytes per second
	whole    bool          // the body has to be there within the grace
	began    time.Time     // with the first read
	read     int64         // bytes
	set      time.Time     // when the deadline was, zero: there is none
	setAt    int64         // bytes that had been read then
}

// Read implements io.Reader. After the last byte the deadline is lifted: the
// connection goes on to the answer and to other requests. When the body does
// not get there it stays, one that has passed too: what is left of the body is
// waited for once more, by net/http before it answers.
func (p *patientReader) Read(buf []byte) (int, error) {
	p.wait()
	n, err := p.r.Read(buf)
	p.read += int64(n)
	if err == nil {
		return n, nil
	}
	p.body.over = true
	if !p.set.IsZero() && errors.Is(err, io.EOF) {
		p.set = time.Time{}
		_ = p.body.response.SetReadDeadline(p.set)
	}
	if errors.Is(err, io.EOF) {
		p.body.arrive()
	}
	return n, bodyError(err)
}

// wait moves the deadline, which is not worth doing for every few bytes.
func (p *patientReader) wait() {
	if p.patience <= 0 && p.grace <= 0 {
		return
	}
	now := time.Now()
	if p.began.IsZero() {
		p.began = now
	}
	const few = 16 << 10
	if !p.set.IsZero() && p.read-p.setAt < few && now.Sub(p.set) < min(p.deadline(now).Sub(now)/8, time.Second) {
		return
	}
	if p.body.response.SetReadDeadline(p.deadline(now)) != nil {
		p.patience, p.grace = 0, 0 // a connection that has no deadlines just waits
		return
	}
	p.set, p.setAt = now, p.read
}

// deadline returns until when the next bytes have to come.
func (p *patientReader) deadline(now time.Time) time.Time {
	silent := now.Add(p.patience)
	if p.grace <= 0 {
		return silent
	}
	due := p.began.Add(p.grace)
	if !p.whole {
		due = due.Add(time.Duration(float64(p.read) / float64(p.rate) * float64(time.Second)))
	}
	if p.patience <= 0 || due.Before(silent) {
		return due
	}
	return silent
}

// Before an answer net/http reads what is left of the body, up to so many bytes,
// so that the client gets to read the answer; more than that ends the connection.
const (
	leftBytes   = 256 << 10
	leftTimeout = 10 * time.Second
)

// passOver reads what a handler has left of the body in the place of net/http,
// which would wait for it for ever.
func (b *Body) passOver() {
	h := b.response.Header()
	if b.over || b.request.Header["Expect"] != nil || b.request.Body == nil || len(h["Connection"]) != 0 {
		return
	}
	b.over = true
	if b.request.ContentLength > leftBytes || b.response.SetReadDeadline(time.Now().Add(leftTimeout)) != nil {
		return // net/http does not read that much either, and what is no connection has nothing to wait for
	}
	if b.ofStranger() && b.arrived == nil {
		b.await()
	}
	_, err := io.CopyN(io.Discard, b.request.Body, leftBytes+1)
	b.arrive()
	if errors.Is(err, io.EOF) {
		_ = b.response.SetReadDeadline(time.Time{})
		return
	}
	h["Connection"] = []string{"close"}
}

// bodyError tells what a client does wrong with its body from trouble of the
// server's own. Ends, early ones too, and bodies above the limit stay what they
// are.
func bodyError(err error) error {
	tooMuch := new(http.MaxBytesError)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &tooMuch):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.Wrap(fault.Timeout, "The request could not be processed in a reasonable amount of time.", err)
	default: // malformed chunks, a connection that broke
		return errUnreadable(err)
	}
}

func errUnreadable(err error) error {
	return fault.Wrap(fault.BadRequest, "The request body could not be read.", err)
}

// await counts the body among those of unauthenticated clients, until it is there.
func (b *Body) await() { b.arrived = b.peer.AwaitBody() }

// arrive tells that the body of an unauthenticated client is there, or is not waited for
// any more.
func (b *Body) arrive() {
	if b.arrived != nil {
		b.arrived()
		b.arrived = nil
	}
}
