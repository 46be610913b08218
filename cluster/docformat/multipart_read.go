package docformat

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"mime/multipart"

	"divan/storage/doc"
	"divan/storage/fault"
)

// multipartBuffer is how much of a multipart body is read ahead, in bytes: the
// standard library's own buffer would fetch the body in pieces of 4 KB.
const multipartBuffer = 64 << 10

// maxPartHeader is how much of a body may stand before the content of a part, in bytes: the
// standard library would keep 10 MB of headers.
const maxPartHeader = 64 << 10

// Parts reads the parts of a multipart body as they stand on the wire.
type Parts struct {
	r     *multipart.Reader
	body  *headerLimit
	after *Part // which Next has returned
}

// headerLimit bounds what is read of a body while the header of a part is looked for.
type headerLimit struct {
	r    *bufio.Reader
	in   bool // a header is looked for
	left int  // bytes that may be read for it
}

// Read implements io.Reader.
func (h *headerLimit) Read(p []byte) (int, error) {
	if !h.in {
		return h.r.Read(p)
	}
	if h.left <= 0 {
		return 0, fault.New(fault.BadRequest, "The header of a part of the multipart body is too long.")
	}
	n, err := h.r.Read(p[:min(len(p), h.left)])
	h.left -= n
	return n, err
}

// NewParts starts reading a multipart body whose media type must be the one
// given.
func NewParts(body io.Reader, contentType, want string) (*Parts, error) {
	name, params, err := mime.ParseMediaType(contentType)
	if err != nil || name != want {
		return nil, fault.Newf(fault.BadContentType, "Content-Type must be %s", want)
	}
	if params["boundary"] == "" {
		return nil, fault.New(fault.BadRequest, "The multipart boundary is missing.")
	}
	limited := &headerLimit{r: bufio.NewReaderSize(body, multipartBuffer)}
	return &Parts{r: multipart.NewReader(limited, params["boundary"]), body: limited}, nil
}

// Next returns the next part. io.EOF means that the body ended as it should.
func (p *Parts) Next() (*Part, error) {
	if p.after != nil { // what is left of it is no header
		if _, err := io.Copy(io.Discard, p.after); err != nil {
			return nil, err
		}
	}
	p.body.in, p.body.left = true, maxPartHeader
	next, err := p.r.NextRawPart()
	p.body.in = false
	switch {
	case err == nil:
		p.after = &Part{next}
		return p.after, nil
	case errors.Is(err, io.EOF):
		return nil, err
	default:
		return nil, badMultipart(err)
	}
}

// Part is one part of a multipart body. A body that ends in the middle of it is
// the client's mistake.
type Part struct{ *multipart.Part }

// Read implements io.Reader.
func (p *Part) Read(buf []byte) (int, error) {
	n, err := p.Part.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		err = badMultipart(err)
	}
	return n, err
}

// badMultipart is the refusal of a body that does not hold what its headers
// announce. Refusals that come from below, such as that of a body above the
// size limit, stay what they are.
func badMultipart(err error) error {
	if f := new(fault.Error); errors.As(err, &f) {
		return err
	}
	return fault.Wrap(fault.BadRequest, "The multipart body is malformed.", err)
}

// RelatedReader reads a document sent as multipart/related: the JSON first,
// then the attachments it marks as following, in its order. Names in the
// parts' headers are not looked at (semantics.md section 4, rule 7).
type RelatedReader struct {
	parts *Parts
}

// NewRelatedReader reads the JSON part, of at most limit bytes.
func NewRelatedReader(body io.Reader, contentType string, readText func(io.Reader) ([]byte, error)) (*RelatedReader, []byte, error) {
	parts, err := NewParts(body, contentType, "multipart/related")
	if err != nil {
		return nil, nil, err
	}
	first, err := parts.Next()
	if errors.Is(err, io.EOF) {
		return nil, nil, fault.New(fault.BadRequest, "invalid UTF-8 JSON")
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := readText(first)
	if err != nil {
		return nil, nil, err
	}
	return &RelatedReader{parts: parts}, text, nil
}

// UpTo reads a text of at most so many bytes.
func UpTo(limit int64) func(io.Reader) ([]byte, error) {
	return func(r io.Reader) ([]byte, error) {
		text, err := io.ReadAll(io.LimitReader(r, limit+1))
		switch {
		case err != nil:
			return nil, err
		case int64(len(text)) > limit:
			return nil, fault.New(fault.RequestTooLarge, "the request entity is too large")
		}
		return text, nil
	}
}

// Next returns the content of the next attachment that follows.
func (r *RelatedReader) Next(spec *doc.AttachmentSpec) (io.Reader, error) {
	part, err := r.parts.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fault.Newf(fault.BadRequest, "No part follows for attachment `%s`.", spec.Name)
	case err != nil:
		return nil, err
	}
	return part, nil
}

// Drain reads what is left, so that the client gets the answer and the
// connection can be used again. Parts beyond those announced are passed over.
func (r *RelatedReader) Drain() {
	for {
		part, err := r.parts.Next()
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, part); err != nil {
			return
		}
	}
}

// FollowingLength is the number of bytes announced for a part, -1 when it is
// not.
func FollowingLength(spec *doc.AttachmentSpec) int64 {
	if spec.Encoding == "gzip" {
		return spec.EncodedLength
	}
	return spec.Length
}
