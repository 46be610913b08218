package docformat

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
)

// errBase64 is returned by base64Reader for text that is no base64.
var errBase64 = errors.New("malformed base64")

// Base64Reader decodes the content of an inline attachment piece by piece, so
// that it is not held twice. The text is standard base64 with padding and may
// hold white space; package doc has checked it.
type Base64Reader struct {
	text  []byte
	spare []byte // decoded bytes that did not fit the caller's buffer
	ahead int    // groups to look at next
	store [3]byte
	quad  [4]byte
}

// NewBase64Reader returns a reader of the content that text stands for.
func NewBase64Reader(text []byte) *Base64Reader { return &Base64Reader{text: text} }

// Read implements io.Reader. Malformed text gives errBase64.
func (r *Base64Reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.spare) > 0 {
			k := copy(p[n:], r.spare)
			r.spare = r.spare[k:]
			n += k
			continue
		}
		if k := r.block(p[n:]); k > 0 {
			n += k
			continue
		}
		switch err := r.group(); {
		case errors.Is(err, io.EOF) && n > 0:
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, nil
}

// block decodes as many whole groups of four digits as fit into p and stand
// together, without padding; 0 when there are none. It looks ahead no further than
// twice what it found the last time, so that text in lines is read once or twice.
func (r *Base64Reader) block(p []byte) int {
	groups := min(len(p)/3, len(r.text)/4, max(r.ahead, minAhead))
	r.ahead = min(2*groups, maxAhead)
	text := r.text[:groups*4]
	for _, end := range []byte("\n\r \t=") {
		if i := bytes.IndexByte(text, end); i >= 0 {
			text = text[:i/4*4]
			r.ahead = len(text) / 2
		}
	}
	n, err := base64.StdEncoding.Decode(p, text)
	if err != nil {
		return 0 // the slow path says where
	}
	r.text = r.text[len(text):]
	return n
}

// How many groups a Base64Reader decodes at once.
const (
	minAhead = 32
	maxAhead = 8 << 10
)

// group decodes the next four digits, passing over white space.
func (r *Base64Reader) group() error {
	k := 0
	for i, c := range r.text {
		if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			continue
		}
		r.quad[k] = c
		if k++; k == len(r.quad) {
			n, err := base64.StdEncoding.Decode(r.store[:], r.quad[:])
			if err != nil {
				return errBase64
			}
			r.text, r.spare = r.text[i+1:], r.store[:n]
			return nil
		}
	}
	if k > 0 {
		return errBase64
	}
	return io.EOF
}
