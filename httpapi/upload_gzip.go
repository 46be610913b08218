package httpapi

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"

	"divan/storage/fault"
)

// gzipCheck passes the gzip stream of a client on and inflates it on the side.
// Content that does not inflate would be stored well enough, but then fail
// every read of its document with attachments by a client that takes no gzip.
type gzipCheck struct {
	r    io.Reader
	name string // of the attachment
	side *io.PipeWriter
	done chan error // what became of the inflating, once
}

// newGzipCheck starts the inflating, which stop ends. Beyond limit inflated
// bytes the stream is taken on trust: it may be a bomb.
func newGzipCheck(r io.Reader, name string, limit int64) *gzipCheck {
	pr, pw := io.Pipe()
	c := &gzipCheck{r: r, name: name, side: pw, done: make(chan error, 1)}
	go func() {
		err := inflateAway(pr, limit)
		pr.CloseWithError(c.refusal()) // of what is still written
		c.done <- err
	}()
	return c
}

// inflateAway reads the whole of r, which must be a gzip stream.
func inflateAway(r io.Reader, limit int64) error {
	in := bufio.NewReaderSize(r, multipartBuffer)
	z, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, z, limit+1); !errors.Is(err, io.EOF) {
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, in)
		return err
	}
	return nil
}

// Read implements io.Reader; the stream ends well only if it inflates.
func (c *gzipCheck) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if n > 0 {
		if _, err := c.side.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	if errors.Is(err, io.EOF) && c.stop() != nil {
		return 0, c.refusal()
	}
	return n, err
}

// stop ends the inflating and returns its error; it may be called again.
func (c *gzipCheck) stop() error {
	_ = c.side.Close() // never fails, says its documentation
	err := <-c.done
	c.done <- err
	return err
}

func (c *gzipCheck) refusal() error {
	return fault.Newf(fault.BadRequest, "Attachment `%s` is not properly gzipped.", c.name)
}
