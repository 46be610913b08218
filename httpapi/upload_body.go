package httpapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"divan/storage/fault"
)

// uploadBody is the body of a request whose attachments are stored while they
// come in. A client may take as long as it likes, but must not fall silent for
// longer than [couchdb] attachment_writer_timeout: an upload holds a file.
func (c *call) uploadBody() io.Reader {
	return &patientReader{
		r: c.bodyReader(), deadline: http.NewResponseController(c.w).SetReadDeadline,
		patience: c.cfg.CouchDB.AttachmentWriterTimeout,
	}
}

// patientReader gives every Read a deadline.
type patientReader struct {
	r        io.Reader
	deadline func(time.Time) error
	patience time.Duration // 0: any
}

// Read implements io.Reader. After the last byte the deadline is lifted: the
// connection goes on to the answer and to other requests.
func (p *patientReader) Read(buf []byte) (int, error) {
	if p.patience > 0 {
		_ = p.deadline(time.Now().Add(p.patience)) // a connection that has none just waits
	}
	n, err := p.r.Read(buf)
	if err == nil {
		return n, nil
	}
	_ = p.deadline(time.Time{})
	return n, bodyError(err)
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
