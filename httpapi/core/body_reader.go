package core

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"divan/storage/fault"
)

// UploadBody is the body of a request whose attachments are stored while they
// come in.
func (c *Call) UploadBody() io.Reader {
	p := c.patientBody(c.bodyReader())
	return &p
}

// PartsBody is UploadBody for a body of several parts, whose reader knows
// nothing of HTTP: one above the limit ends with the refusal of it.
func (c *Call) PartsBody() io.Reader { return limitedBody{c.UploadBody()} }

type limitedBody struct{ r io.Reader }

// Read implements io.Reader.
func (b limitedBody) Read(buf []byte) (int, error) {
	n, err := b.r.Read(buf)
	if tooMuch := new(http.MaxBytesError); errors.As(err, &tooMuch) {
		err = errTooLong()
	}
	return n, err
}

// patientBody reads a body of this request. A client may take as long as it
// likes, but must not fall silent for longer than [couchdb]
// attachment_writer_timeout, whatever it sends: an upload holds a file, a JSON
// text what came of it, and each of them one of the requests that may be under
// way.
func (c *Call) patientBody(r io.Reader) patientReader {
	return patientReader{r: r, conn: c.Response, patience: c.Config.CouchDB.AttachmentWriterTimeout}
}

// patientReader has a deadline for what it reads, which moves along with what
// comes.
type patientReader struct {
	r        io.Reader
	conn     *Response
	patience time.Duration // 0: any
	set      time.Time     // when the deadline was, zero: there is none
}

// Read implements io.Reader. After the last byte the deadline is lifted: the
// connection goes on to the answer and to other requests. When the body does
// not get there it stays, one that has passed too: what is left of the body is
// waited for once more, by net/http before it answers.
func (p *patientReader) Read(buf []byte) (int, error) {
	p.wait()
	n, err := p.r.Read(buf)
	if err == nil {
		return n, nil
	}
	if !p.set.IsZero() && errors.Is(err, io.EOF) {
		p.set = time.Time{}
		_ = p.conn.SetReadDeadline(p.set)
	}
	return n, bodyError(err)
}

// wait moves the deadline, which is not worth doing for every few bytes.
func (p *patientReader) wait() {
	if p.patience <= 0 {
		return
	}
	now := time.Now()
	if !p.set.IsZero() && now.Sub(p.set) < min(p.patience/8, time.Second) {
		return
	}
	if p.conn.SetReadDeadline(now.Add(p.patience)) != nil {
		p.patience = 0 // a connection that has no deadlines just waits
		return
	}
	p.set = now
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
