package docformat

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"divan/storage/doc"
)

// Boundary returns 32 random hexadecimal digits that separate MIME parts.
func Boundary() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Related is one document as multipart/related: its JSON, then the stored
// bytes of the attachments that the JSON marks as following (api.md 10.4).
//
//	--B CRLF Content-Type: application/json CRLF CRLF <json>
//	CRLF --B CRLF <headers of an attachment> CRLF CRLF <bytes>     repeated
//	CRLF --B--
type Related struct {
	Boundary string
	JSON     []byte
	ID       string
	Atts     []doc.Attachment // a negative StoredLength is not known
}

const relatedHead = "\r\nContent-Type: application/json\r\n\r\n"

// ContentType is the Content-Type of the document.
func (m *Related) ContentType() string {
	return `multipart/related; boundary="` + m.Boundary + `"`
}

// Size is the exact number of bytes that Write writes, -1 when it is not known.
func (m *Related) Size() int64 {
	line := int64(len("\r\n--") + len(m.Boundary))
	n := line - int64(len("\r\n")) + int64(len(relatedHead)+len(m.JSON)) + line
	var head []byte
	for i := range m.Atts {
		if m.Atts[i].StoredLength < 0 {
			return -1
		}
		head = appendPartHead(head[:0], &m.Atts[i])
		n += int64(len(head)) + m.Atts[i].StoredLength + line
	}
	return n + int64(len("--"))
}

// Write writes the document. The attachments are read one after the other.
func (m *Related) Write(ctx context.Context, w io.Writer, db ContentReader) error {
	buf := make([]byte, 0, len(m.JSON)+256)
	buf = append(append(buf, "--"...), m.Boundary...)
	buf = append(append(buf, relatedHead...), m.JSON...)
	buf = append(append(buf, "\r\n--"...), m.Boundary...)
	for i := range m.Atts {
		a := &m.Atts[i]
		buf = appendPartHead(buf, a)
		if _, err := w.Write(buf); err != nil {
			return fmt.Errorf("write part: %w", err)
		}
		if err := copyStored(ctx, w, db, m.ID, a); err != nil {
			return err
		}
		buf = append(append(buf[:0], "\r\n--"...), m.Boundary...)
	}
	if _, err := w.Write(append(buf, "--"...)); err != nil {
		return fmt.Errorf("write the end of the parts: %w", err)
	}
	return nil
}

// appendPartHead appends the headers of an attachment's part and the empty
// line, starting with the end of the boundary's line.
func appendPartHead(dst []byte, a *doc.Attachment) []byte {
	dst = append(dst, "\r\nContent-Disposition: attachment; filename=\""...)
	dst = appendQuotedParam(dst, a.Name)
	dst = append(dst, "\"\r\nContent-Type: "...)
	dst = appendHeaderValue(dst, a.ContentType)
	if a.StoredLength >= 0 {
		dst = append(dst, "\r\nContent-Length: "...)
		dst = strconv.AppendInt(dst, a.StoredLength, 10)
	}
	if a.Gzip {
		dst = append(dst, "\r\nContent-Encoding: gzip"...)
	}
	return append(dst, "\r\n\r\n"...)
}

// appendQuotedParam appends the inside of a quoted MIME parameter. Names of
// attachments are free text: quotes are escaped, control characters become
// spaces, so that no name can add a header.
func appendQuotedParam(dst []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			dst = append(dst, '\\', c)
		case isControl(rune(c)):
			dst = append(dst, ' ')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// appendHeaderValue appends a header's value with control characters replaced
// by spaces.
func appendHeaderValue(dst []byte, s string) []byte { return append(dst, HeaderValue(s)...) }

// HeaderValue returns s without characters that would end a header line. It
// is the stored content type of an attachment, which came in as JSON text.
func HeaderValue(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, s)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// copyStored writes the stored bytes of an attachment.
func copyStored(ctx context.Context, w io.Writer, db ContentReader, id string, a *doc.Attachment) error {
	r, err := db.ReadAttachment(ctx, id, *a, 0, a.StoredLength)
	if err != nil {
		return fmt.Errorf("open attachment %q of %q: %w", a.Name, id, err)
	}
	if err := CopyContent(w, r, a.StoredLength); err != nil {
		return fmt.Errorf("send attachment %q of %q: %w", a.Name, id, err)
	}
	return nil
}

// Mixed writes multipart/mixed and multipart/byteranges: parts with headers of
// their own, whose number need not be known.
//
//	--B CRLF <headers> CRLF CRLF <body>  CRLF --B CRLF …  CRLF --B--
type Mixed struct {
	w        io.Writer
	boundary string
}

// NewMixed starts a body in which parts are separated by boundary.
func NewMixed(w io.Writer, boundary string) (*Mixed, error) {
	m := &Mixed{w: w, boundary: boundary}
	return m, m.write("--", boundary)
}

func (m *Mixed) write(texts ...string) error {
	for _, text := range texts {
		if _, err := io.WriteString(m.w, text); err != nil {
			return err
		}
	}
	return nil
}

// Part starts a part; head holds its header lines, separated by CRLF and
// without one at the end.
func (m *Mixed) Part(head string) error { return m.write("\r\n", head, "\r\n\r\n") }

// End ends a part.
func (m *Mixed) End() error { return m.write("\r\n--", m.boundary) }

// Close ends the body, but not the writer.
func (m *Mixed) Close() error { return m.write("--") }
