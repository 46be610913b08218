package docs

import (
	"divan/cluster"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// getOpenRevs answers ?open_revs=: several revisions of one document, as
// multipart/mixed for a client that takes it, else as a JSON array
// (api.md 9.2).
func getOpenRevs(c *core.Call, o *docOptions) error {
	style := o.style()
	asParts := core.Accepts(c.Request, "multipart/mixed")
	if asParts {
		// Attachments always come along in this form.
		style.Attachments, style.Follows, style.EncodingInfo = true, true, true
	}
	if err := c.Rights().Read(c.DocID); err != nil {
		return err
	}
	results, err := c.DB.OpenRevs(c.Request.Context(), cluster.OpenRevsOptions{
		ID: c.DocID, Revs: o.open.list, All: o.open.all, Latest: o.latest,
		WithPath: o.revs || style.NeedsPath(), R: o.r, Memory: &c.Memory,
	})
	if err != nil {
		return err
	}
	if o.open.all && len(results) == 0 {
		return fault.New(fault.NotFound, "missing")
	}
	if err := screenRevs(c, results); err != nil {
		return err
	}
	space := c.Memory.HoldInSteps()
	for i := range results {
		if err := space(results[i].Doc.Size()); err != nil { // all of them wait for the client
			return err
		}
	}
	if asParts {
		return sendRevParts(c, results, style)
	}
	return sendRevList(c, results, style)
}

// sendRevList answers [{"ok":{…}},{"missing":"2-…"}].
func sendRevList(c *core.Call, results []shard.RevResult, style docformat.Style) error {
	out := c.Stream("")
	out.Buf = append(out.Buf, '[')
	for i := range results {
		if i > 0 {
			out.Buf = append(out.Buf, ',')
		}
		if results[i].Doc == nil {
			out.Buf = appendMissing(out.Buf, results[i].Rev)
			continue
		}
		out.Buf = append(out.Buf, `{"ok":`...)
		if err := out.WriteDoc(c.Request.Context(), results[i].Doc, style); err != nil {
			return err
		}
		out.Buf = append(out.Buf, '}')
	}
	out.Buf = append(out.Buf, "]\n"...)
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
func sendRevParts(c *core.Call, results []shard.RevResult, style docformat.Style) error {
	parts, err := startParts(c, "multipart/mixed", style)
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
	c     *core.Call
	out   *core.Stream
	mixed *docformat.Mixed
	inner string // boundary inside a document
	style docformat.Style
}

// startParts starts an answer of that multipart type.
func startParts(c *core.Call, kind string, style docformat.Style) (*docParts, error) {
	outer := docformat.Boundary()
	out := c.Stream(kind + `; boundary="` + outer + `"`)
	m, err := docformat.NewMixed(out, outer)
	if err != nil {
		return nil, err
	}
	return &docParts{c: c, out: out, mixed: m, inner: docformat.Boundary(), style: style}, nil
}

// close ends the answer.
func (p *docParts) close() error {
	if err := p.mixed.Close(); err != nil {
		return err
	}
	return p.out.Close()
}

// json writes a part that is a JSON text.
func (p *docParts) json(head string, text []byte) error {
	if err := p.mixed.Part(head); err != nil {
		return err
	}
	if _, err := p.out.Write(text); err != nil {
		return err
	}
	return p.mixed.End()
}

// doc writes a document; head holds further header lines for a document with
// attachments, each with its CRLF.
func (p *docParts) doc(d *shard.Doc, head string) error {
	text := p.style.Append(nil, d)
	atts := p.style.WithContent(d)
	if len(atts) == 0 {
		return p.json(jsonPart, text)
	}
	m := docformat.Related{Boundary: p.inner, ID: d.ID, Atts: atts, JSON: text}
	if err := p.mixed.Part(head + "Content-Type: " + m.ContentType()); err != nil {
		return err
	}
	if err := m.Write(p.c.Request.Context(), p.out, p.c.DB); err != nil {
		return err
	}
	return p.mixed.End()
}
