package doc

import (
	"bytes"
	"errors"
	"io"
	"math"

	"divan/storage/fault"
)

// BulkLimits bound what ReadBulk holds.
type BulkLimits struct {
	// Document is how many bytes the text of a document may have when no member
	// of it has been named _attachments by then.
	Document int
	// Space is asked before so many more bytes are held; its error ends the
	// reading.
	Space func(bytes int) error
	// Text is a buffer for texts while they are read. It is left there when it was
	// not given away, and may be larger then; nil: there is none.
	Text *[]byte
}

// ReadBulk is ParseBulk for a body that is read while it comes: only the bodies
// of its documents, and the attachments in them, are held in the end. An error of
// r, or of the limits, is returned as it is.
func ReadBulk(r io.Reader, limits BulkLimits) (Bulk, error) {
	b := bulkReader{r: r, limits: limits, buf: make([]byte, 0, 64<<10), outcome: bulkOutcome{bulk: Bulk{NewEdits: true}}}
	if limits.Text != nil {
		b.text = (*limits.Text)[:0]
		defer func() { *limits.Text = b.text }()
	}
	if err := b.read(); err != nil {
		return Bulk{}, err
	}
	out, err := b.outcome.result()
	if err == nil && b.refusal != nil {
		return Bulk{}, b.refusal
	}
	return out, err
}

// bulkOutcome is the result of reading a body of _bulk_docs that is JSON.
type bulkOutcome struct {
	bulk                           Bulk
	hasDocs, docsWrong, editsWrong bool
}

// result returns the documents, or what is wrong with the members of the body.
func (o *bulkOutcome) result() (Bulk, error) {
	switch {
	case !o.hasDocs:
		return Bulk{}, fault.New(fault.BadRequest, "POST body must include `docs` parameter.")
	case o.docsWrong:
		return Bulk{}, fault.New(fault.BadRequest, "`docs` parameter must be an array.")
	case o.editsWrong:
		return Bulk{}, fault.New(fault.BadRequest, "`new_edits` parameter must be a boolean.")
	}
	return o.bulk, nil
}

// member takes a member of the body that is not an array of documents; value
// begins with c.
func (o *bulkOutcome) member(name string, c byte, value []byte) {
	switch name {
	case "docs":
	case "new_edits":
		o.bulk.NewEdits = c == 't'
		o.editsWrong = c != 't' && c != 'f'
	default:
		o.bulk.Others = append(o.bulk.Others, Member{Name: name, Value: value})
	}
}

// bulkReader finds where the documents of a body begin and end. Whether they, and
// all other values, are JSON is for the scanner to say.
type bulkReader struct {
	r       io.Reader
	limits  BulkLimits
	buf     []byte // what was read last
	pos     int    // in buf
	last    error  // of r; nil: there may be more
	text    []byte // of the value read last, used again
	space   int    // bytes of it that the limits know of
	outcome bulkOutcome
	refusal error // of the first document that is refused
}

// next returns the next byte and leaves it there, 0 at the end.
func (b *bulkReader) next() byte {
	for b.pos == len(b.buf) {
		if b.last != nil {
			return 0
		}
		n, err := b.r.Read(b.buf[:cap(b.buf)])
		b.buf, b.pos, b.last = b.buf[:n], 0, err
	}
	return b.buf[b.pos]
}

// skipSpace skips white space and returns the byte after it, 0 at the end.
func (b *bulkReader) skipSpace() byte {
	for {
		c := b.next()
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
		b.pos++
	}
}

// malformed is the error of a body that is no JSON, or broke off.
func (b *bulkReader) malformed() error {
	if b.last != nil && !errors.Is(b.last, io.EOF) {
		return b.last
	}
	return errJSON()
}

// atEnd fails when anything but white space follows.
func (b *bulkReader) atEnd() error {
	if b.skipSpace() != 0 || b.pos < len(b.buf) || !errors.Is(b.last, io.EOF) {
		return b.malformed()
	}
	return nil
}

// read reads the whole body.
func (b *bulkReader) read() error {
	if b.skipSpace() != '{' {
		if err := b.value(math.MaxInt); err != nil {
			return err
		}
		s := scanner{src: b.text, drop: true}
		err := s.wrongType(notRequestObject)
		if end := b.atEnd(); end != nil {
			return end
		}
		return err
	}
	b.pos++
	if b.skipSpace() == '}' {
		b.pos++
		return b.atEnd()
	}
	for {
		if err := b.member(); err != nil {
			return err
		}
		more, err := b.comma('}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if err := b.atEnd(); err != nil {
		return err
	}
	return nil
}

// comma reads what follows an element: a comma (more) or the closing bracket.
func (b *bulkReader) comma(closing byte) (more bool, err error) {
	c := b.skipSpace()
	if c != ',' && c != closing {
		return false, b.malformed()
	}
	b.pos++
	return c == ',', nil
}

// member reads one member of the body.
func (b *bulkReader) member() error {
	if b.skipSpace() != '"' {
		return b.malformed()
	}
	if err := b.checked(); err != nil {
		return err
	}
	name, ok := unquoted(b.text)
	if !ok || b.skipSpace() != ':' {
		return b.malformed()
	}
	word := string(name)
	b.pos++
	c := b.skipSpace()
	if word == "docs" {
		b.outcome.hasDocs, b.outcome.docsWrong, b.outcome.bulk.Docs = true, c != '[', nil
		if c == '[' {
			return b.documents()
		}
	}
	if err := b.checked(); err != nil {
		return err
	}
	if err := b.limits.Space(len(word) + len(b.text) + memberSpace); err != nil {
		return err
	}
	b.outcome.member(word, c, bytes.Clone(b.text))
	return nil
}

// checked reads a value of the body into text, and checks that it is JSON.
func (b *bulkReader) checked() error {
	if err := b.value(math.MaxInt); err != nil {
		return err
	}
	s := scanner{src: b.text, drop: true, depth: 1}
	if !s.value() || !s.atEnd() {
		return s.err()
	}
	return nil
}

// documents reads the array of documents.
func (b *bulkReader) documents() error {
	b.pos++
	if b.skipSpace() == ']' {
		b.pos++
		return nil
	}
	for {
		b.skipSpace()
		if err := b.value(b.limits.Document); err != nil {
			return err
		}
		if err := b.document(); err != nil {
			return err
		}
		if more, err := b.comma(']'); err != nil || !more {
			return err
		}
	}
}

// What is made of a body beside its text, in bytes.
const (
	documentSpace = 640 // of a document: its Envelope, its edit, the answer, what a store makes of it
	memberSpace   = 64  // of a member of the body
)

// document takes the document whose text was read. Once one was refused, the
// others are only checked.
func (b *bulkReader) document() error {
	p := envelopeParser{scanner: scanner{src: b.text, signs: true, depth: 2, names: nameCheck{on: true}}}
	if p.skipSpace() != '{' {
		p.drop = true
		if !p.value() || !p.atEnd() {
			return p.err()
		}
		if b.refusal == nil {
			b.refusal = fault.New(fault.BadRequest, notObject)
		}
		return nil
	}
	space := bodySpace(b.text)
	if err := b.limits.Space(space + documentSpace); err != nil {
		return err
	}
	p.dst = make([]byte, 0, space)
	if !p.document() || !p.atEnd() {
		return p.err()
	}
	if p.names.twice {
		if err := b.limits.Space(len(b.text)); err != nil {
			return err
		}
		p.env, p.refusal = parseEnvelope(lastMembers(b.text), false)
	}
	if b.refusal == nil {
		b.refusal = p.refusal
	}
	if b.refusal != nil {
		b.outcome.bulk.Docs = nil
		return nil //nolint:nilerr // it is told at the end, when the rest is JSON
	}
	b.outcome.bulk.Docs = append(b.outcome.bulk.Docs, p.env)
	if len(p.env.Atts) > 0 {
		b.text, b.space = nil, 0 // they are in it
	}
	return nil
}

// value reads the text of one value. When that has most bytes, attachments must
// have been among them.
func (b *bulkReader) value(most int) error {
	b.text = b.text[:0]
	v := valueEnd{}
	for !v.over {
		if b.next() == 0 && b.pos == len(b.buf) {
			if !errors.Is(b.last, io.EOF) {
				return b.last
			}
			return nil // cut off: the scanner says so, unless it is a number
		}
		n := v.skip(b.buf[b.pos:])
		if err := b.grow(len(b.text) + n); err != nil {
			return err
		}
		b.text = append(b.text, b.buf[b.pos:b.pos+n]...)
		b.pos += n
		if len(b.text) > most {
			if !bytes.Contains(b.text, []byte(`"_attachments"`)) {
				return fault.New(fault.RequestTooLarge, "the request entity is too large")
			}
			most = math.MaxInt
		}
	}
	return nil
}

// grow makes space for a text of n bytes.
func (b *bulkReader) grow(n int) error {
	if n > b.space {
		size := max(n, 2*b.space)
		if err := b.limits.Space(size - b.space); err != nil {
			return err
		}
		b.space = size
	}
	if n > cap(b.text) {
		b.text = append(make([]byte, 0, b.space), b.text...)
	}
	return nil
}

// valueEnd finds the end of a value that comes in pieces.
type valueEnd struct {
	depth                    int
	begun, inString, escaped bool
	over                     bool
}

// skip returns how many bytes of a piece belong to the value; over says whether
// it ends with them.
func (v *valueEnd) skip(piece []byte) int {
	for i := 0; i < len(piece); i++ {
		c := piece[i]
		switch {
		case v.escaped:
			v.escaped = false
		case v.inString:
			switch c {
			case '\\':
				v.escaped = true
			case '"':
				v.inString = false
				if v.depth == 0 {
					v.over = true
					return i + 1
				}
			}
		default:
			if end, ok := v.token(c, i); ok {
				v.over = true
				return end
			}
		}
	}
	return len(piece)
}

// token takes a byte outside of strings, at i; ok is true when the value ends at
// end.
func (v *valueEnd) token(c byte, i int) (end int, ok bool) {
	switch c {
	case '"':
		v.inString, v.begun = true, true
	case '{', '[':
		v.depth++
		v.begun = true
	case '}', ']':
		if v.depth == 0 {
			return i, true
		}
		if v.depth--; v.depth == 0 {
			return i + 1, true
		}
	case ',', ' ', '\n', '\r', '\t':
		if v.depth == 0 && v.begun {
			return i, true
		}
	default:
		v.begun = true
	}
	return 0, false
}
