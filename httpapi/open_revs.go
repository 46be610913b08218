package httpapi

import (
	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// getOpenRevs answers ?open_revs=: several revisions of one document, as
// multipart/mixed for a client that takes it, else as a JSON array
// (api.md 9.2).
func (c *call) getOpenRevs(o *docOptions) error {
	style := o.style()
	asParts := c.accepts("multipart/mixed")
	if asParts {
		// Attachments always come along in this form.
		style.attachments, style.follows, style.encoding = true, true, true
	}
	if err := c.mayRead(c.docID); err != nil {
		return err
	}
	results, err := c.db.OpenRevs(c.r.Context(), cluster.OpenRevsOptions{
		ID: c.docID, Revs: o.open.list, All: o.open.all, Latest: o.latest,
		WithPath: o.revs || style.needsPath(), R: o.r,
	})
	if err != nil {
		return err
	}
	if o.open.all && len(results) == 0 {
		return fault.New(fault.NotFound, "missing")
	}
	if err := c.screenRevs(results); err != nil {
		return err
	}
	if asParts {
		return c.sendRevParts(results, style)
	}
	return c.sendRevList(results, style)
}

// sendRevList answers [{"ok":{…}},{"missing":"2-…"}].
func (c *call) sendRevList(results []shard.RevResult, style docStyle) error {
	out := c.stream("")
	out.buf = append(out.buf, '[')
	for i := range results {
		if i > 0 {
			out.buf = append(out.buf, ',')
		}
		if results[i].Doc == nil {
			out.buf = appendMissing(out.buf, results[i].Rev)
			continue
		}
		out.buf = append(out.buf, `{"ok":`...)
		if err := out.writeDoc(c.r.Context(), results[i].Doc, style); err != nil {
			return err
		}
		out.buf = append(out.buf, '}')
	}
	out.buf = append(out.buf, "]\n"...)
	return out.Close()
}

// appendMissing appends what stands for a revision that is not here.
func appendMissing(dst []byte, rev doc.Rev) []byte {
	dst = append(dst, `{"missing":`...)
	dst = rev.AppendJSON(dst)
	return append(dst, '}')
}

const (
	jsonPart  = "Content-Type: application/json"
	errorPart = `Content-Type: application/json; error="true"`
)

// sendRevParts answers each revision as a part of multipart/mixed.
func (c *call) sendRevParts(results []shard.RevResult, style docStyle) error {
	parts, err := c.startParts("multipart/mixed", style)
	if err != nil {
		return err
	}
	for i := range results {
		if results[i].Doc == nil {
			err = parts.json(errorPart, appendMissing(nil, results[i].Rev))
		} else {
			err = parts.doc(results[i].Doc, "")
		}
		if err != nil {
			return err
		}
	}
	return parts.close()
}

// docParts writes documents as parts of a multipart answer: as JSON, or as
// multipart/related when content of attachments goes with them.
type docParts struct {
	c     *call
	out   *streamWriter
	mixed *mixed
	inner string // boundary inside a document
	style docStyle
}

// startParts starts an answer of that multipart type.
func (c *call) startParts(kind string, style docStyle) (*docParts, error) {
	outer := boundary()
	out := c.stream(kind + `; boundary="` + outer + `"`)
	m, err := newMixed(out, outer)
	if err != nil {
		return nil, err
	}
	return &docParts{c: c, out: out, mixed: m, inner: boundary(), style: style}, nil
}

// close ends the answer.
func (p *docParts) close() error {
	if err := p.mixed.close(); err != nil {
		return err
	}
	return p.out.Close()
}

// json writes a part that is a JSON text.
func (p *docParts) json(head string, text []byte) error {
	if err := p.mixed.part(head); err != nil {
		return err
	}
	if _, err := p.out.Write(text); err != nil {
		return err
	}
	return p.mixed.end()
}

// doc writes a document; head holds further header lines for a document with
// attachments, each with its CRLF.
func (p *docParts) doc(d *shard.Doc, head string) error {
	text := p.style.appendDoc(nil, d)
	atts := p.style.withContent(d)
	if len(atts) == 0 {
		return p.json(jsonPart, text)
	}
	m := related{boundary: p.inner, id: d.ID, atts: atts, json: text}
	if err := p.mixed.part(head + "Content-Type: " + m.contentType()); err != nil {
		return err
	}
	if err := m.write(p.c.r.Context(), p.out, p.c.db); err != nil {
		return err
	}
	return p.mixed.end()
}
