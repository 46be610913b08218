package httpapi

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

// parts reads the parts of a multipart body as they stand on the wire.
type parts struct{ r *multipart.Reader }

// newParts starts reading a multipart body whose media type must be the one
// given.
func newParts(body io.Reader, contentType, want string) (*parts, error) {
	name, params, err := mime.ParseMediaType(contentType)
	if err != nil || name != want {
		return nil, fault.Newf(fault.BadContentType, "Content-Type must be %s", want)
	}
	if params["boundary"] == "" {
		return nil, fault.New(fault.BadRequest, "The multipart boundary is missing.")
	}
	return &parts{multipart.NewReader(bufio.NewReaderSize(body, multipartBuffer), params["boundary"])}, nil
}

// next returns the next part. io.EOF means that the body ended as it should.
func (p *parts) next() (*part, error) {
	next, err := p.r.NextRawPart()
	switch {
	case err == nil:
		return &part{next}, nil
	case errors.Is(err, io.EOF):
		return nil, err
	default:
		return nil, badMultipart(err)
	}
}

// part is one part of a multipart body. A body that ends in the middle of it is
// the client's mistake.
type part struct{ *multipart.Part }

// Read implements io.Reader.
func (p *part) Read(buf []byte) (int, error) {
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

// relatedReader reads a document sent as multipart/related: the JSON first,
// then the attachments it marks as following, in its order. Names in the
// parts' headers are not looked at (semantics.md section 4, rule 7).
type relatedReader struct {
	parts *parts
}

// newRelatedReader reads the JSON part, of at most limit bytes.
func newRelatedReader(body io.Reader, contentType string, limit int64) (*relatedReader, []byte, error) {
	parts, err := newParts(body, contentType, "multipart/related")
	if err != nil {
		return nil, nil, err
	}
	first, err := parts.next()
	if errors.Is(err, io.EOF) {
		return nil, nil, fault.New(fault.BadRequest, "invalid UTF-8 JSON")
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(first, limit+1))
	switch {
	case err != nil:
		return nil, nil, err
	case int64(len(text)) > limit:
		return nil, nil, fault.New(fault.RequestTooLarge, "the request entity is too large")
	}
	return &relatedReader{parts: parts}, text, nil
}

// next returns the content of the next attachment that follows.
func (r *relatedReader) next(spec *doc.AttachmentSpec) (io.Reader, error) {
	part, err := r.parts.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fault.Newf(fault.BadRequest, "No part follows for attachment `%s`.", spec.Name)
	case err != nil:
		return nil, err
	}
	return part, nil
}

// drain reads what is left, so that the client gets the answer and the
// connection can be used again. Parts beyond those announced are passed over.
func (r *relatedReader) drain() {
	for {
		part, err := r.parts.next()
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, part); err != nil {
			return
		}
	}
}

// followingLength is the number of bytes announced for a part, -1 when it is
// not.
func followingLength(spec *doc.AttachmentSpec) int64 {
	if spec.Encoding == "gzip" {
		return spec.EncodedLength
	}
	return spec.Length
}
