package httpapi

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"divan/storage/doc"
	"divan/storage/fault"
)

// multipartBuffer is how much of a multipart body is read ahead, in bytes: the
// standard library's own buffer would fetch the body in pieces of 4 KB.
const multipartBuffer = 64 << 10

// newMultipart starts reading a multipart body whose media type must be the
// one given.
func newMultipart(body io.Reader, contentType, want string) (*multipart.Reader, error) {
	name, params, err := mime.ParseMediaType(contentType)
	if err != nil || name != want {
		return nil, fault.Newf(fault.BadContentType, "Content-Type must be %s", want)
	}
	if params["boundary"] == "" {
		return nil, fault.New(fault.BadRequest, "The multipart boundary is missing.")
	}
	return multipart.NewReader(bufio.NewReaderSize(body, multipartBuffer), params["boundary"]), nil
}

// nextPart returns the next part as it stands on the wire. io.EOF means that
// the body ended as it should.
func nextPart(r *multipart.Reader) (*multipart.Part, error) {
	part, err := r.NextRawPart()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, badMultipart(err)
	}
	return part, err
}

// badMultipart is the refusal of a body that does not hold what its headers
// announce. Refusals that come from below, such as a body above the size
// limit, stay what they are.
func badMultipart(err error) error {
	if f := new(fault.Error); errors.As(err, &f) {
		return err
	}
	if tooMuch := new(http.MaxBytesError); errors.As(err, &tooMuch) {
		return errTooLong()
	}
	return fault.Wrap(fault.BadRequest, "The multipart body is malformed.", err)
}

// relatedReader reads a document sent as multipart/related: the JSON first,
// then the attachments it marks as following, in its order. Names in the
// parts' headers are not looked at (semantics.md section 4, rule 7).
type relatedReader struct {
	parts *multipart.Reader
}

// newRelatedReader reads the JSON part, of at most limit bytes.
func newRelatedReader(body io.Reader, contentType string, limit int64) (*relatedReader, []byte, error) {
	parts, err := newMultipart(body, contentType, "multipart/related")
	if err != nil {
		return nil, nil, err
	}
	first, err := nextPart(parts)
	if errors.Is(err, io.EOF) {
		return nil, nil, fault.New(fault.BadRequest, "invalid UTF-8 JSON")
	}
	if err != nil {
		return nil, nil, err
	}
	text, err := readAll(first, -1, limit)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, nil, errTooLong()
	case err != nil:
		return nil, nil, badMultipart(err)
	}
	return &relatedReader{parts: parts}, text, nil
}

// next returns the content of the next attachment that follows.
func (r *relatedReader) next(spec *doc.AttachmentSpec) (io.Reader, error) {
	part, err := nextPart(r.parts)
	if errors.Is(err, io.EOF) {
		return nil, fault.Newf(fault.BadRequest, "No part follows for attachment `%s`.", spec.Name)
	}
	if err != nil {
		return nil, err
	}
	return partReader{part}, nil
}

// drain reads what is left, so that the client gets the answer and the
// connection can be used again. Parts beyond those announced are passed over.
func (r *relatedReader) drain() {
	for {
		part, err := r.parts.NextRawPart()
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

// partReader tells a body that ends in the middle of a part as the client's
// mistake.
type partReader struct{ part io.Reader }

// Read implements io.Reader.
func (p partReader) Read(buf []byte) (int, error) {
	n, err := p.part.Read(buf)
	if err != nil && !errors.Is(err, io.EOF) {
		err = badMultipart(err)
	}
	return n, err
}
