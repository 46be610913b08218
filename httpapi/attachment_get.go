package httpapi

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// attachmentName is the name of the attachment in the path: everything after
// the document, whether its slashes were escaped or not.
func (c *call) attachmentName() string {
	if len(c.rest) == 1 {
		return c.rest[0]
	}
	return strings.Join(c.rest, "/")
}

// refuseLocalAttachment refuses attachments of local documents.
func (c *call) refuseLocalAttachment() error {
	if doc.IsLocal(c.docID) || c.docID == "_local" {
		return fault.New(fault.BadRequest, "_local documents do not accept attachments.")
	}
	return nil
}

// getAttachment serves GET and HEAD /{db}/{docid}/{name} (api.md 10.1).
func getAttachment(c *call) error {
	if err := c.refuseLocalAttachment(); err != nil {
		return err
	}
	o, err := parseDocOptions(c.query)
	if err != nil {
		return err
	}
	q := cluster.OpenOptions{ID: c.docID, AllowDeleted: o.deleted, R: o.r}
	if o.hasRev && !o.latest {
		q.Rev = o.rev
	}
	d, err := c.open(q)
	if err != nil {
		return err
	}
	a := findAttachment(d, c.attachmentName())
	if a == nil {
		return errNoAttachment()
	}
	return c.sendAttachment(a)
}

func errNoAttachment() error {
	return fault.New(fault.NotFound, "Document is missing attachment")
}

// findAttachment returns the attachment of that name, nil when there is none.
func findAttachment(d *shard.Doc, name string) *doc.Attachment {
	for i := range d.Atts {
		if d.Atts[i].Name == name {
			return &d.Atts[i]
		}
	}
	return nil
}

// sendAttachment answers one attachment: as stored, inflated for a client that
// takes no gzip, or parts of it.
func (c *call) sendAttachment(a *doc.Attachment) error {
	h := c.w.Header()
	etag := `"` + base64.StdEncoding.EncodeToString(a.Digest[:]) + `"`
	h["Etag"] = []string{etag}
	h["Cache-Control"] = mustRevalidate
	if c.etagMatches(etag) {
		return c.sendEmpty(http.StatusNotModified)
	}
	h["Content-Type"] = []string{headerValue(a.ContentType)}
	if rule := &c.cfg.CSP.Attachments; rule.Enable {
		h["Content-Security-Policy"] = []string{rule.Value}
	}
	if a.Gzip {
		h["Accept-Ranges"] = []string{"none"}
		return c.sendGzipped(a)
	}
	h["Accept-Ranges"] = []string{"bytes"}
	wanted := c.r.Header.Get("Range")
	if !c.rangeApplies(etag) {
		wanted = ""
	}
	ranges, err := parseRanges(wanted, a.Length)
	if err != nil {
		return err
	}
	switch len(ranges) {
	case 0:
		return c.sendStored(a)
	case 1:
		return c.sendRange(a, ranges[0])
	default:
		return c.sendRanges(a, ranges)
	}
}

// sendStored answers the stored bytes.
func (c *call) sendStored(a *doc.Attachment) error {
	return c.sendBytes(http.StatusOK, a, byteRange{0, a.StoredLength - 1})
}

// sendBytes answers a part of the stored bytes.
func (c *call) sendBytes(status int, a *doc.Attachment, r byteRange) error {
	c.w.Header()["Content-Length"] = []string{strconv.FormatInt(r.length(), 10)}
	if c.head {
		c.w.WriteHeader(status)
		return nil
	}
	body, err := c.db.ReadAttachment(c.r.Context(), c.docID, *a, r.from, r.length())
	if err != nil {
		return fmt.Errorf("open attachment %q of %q: %w", a.Name, c.docID, err)
	}
	c.w.WriteHeader(status)
	if err := copyContent(c.w, body, r.length()); err != nil {
		return fmt.Errorf("send attachment %q of %q: %w", a.Name, c.docID, err)
	}
	return nil
}

// sendGzipped answers an attachment that is stored as gzip.
func (c *call) sendGzipped(a *doc.Attachment) error {
	h := c.w.Header()
	h["Vary"] = append(h["Vary"], "Accept-Encoding")
	if c.acceptsGzip() {
		h["Content-Encoding"] = []string{"gzip"}
		return c.sendStored(a)
	}
	// A client that compressed the content itself has told no other length
	// than that of what it sent.
	if a.Length != a.StoredLength {
		h["Content-Length"] = []string{strconv.FormatInt(a.Length, 10)}
	}
	if c.head {
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	body, err := openIdentity(c.r.Context(), c.db, c.docID, a)
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusOK)
	if err := copyContent(c.w, body, -1); err != nil {
		return fmt.Errorf("send attachment %q of %q: %w", a.Name, c.docID, err)
	}
	return nil
}

// acceptsGzip reports whether the client takes a gzip-coded answer. Unlike
// with Accept, a missing header takes none.
func (c *call) acceptsGzip() bool {
	for _, v := range c.r.Header["Accept-Encoding"] {
		for item := range strings.SplitSeq(v, ",") {
			name, options, _ := strings.Cut(strings.TrimSpace(item), ";")
			name = strings.TrimSpace(name)
			if (strings.EqualFold(name, "gzip") || name == "*") && !refusedByQuality(options) {
				return true
			}
		}
	}
	return false
}

// sendRange answers one range.
func (c *call) sendRange(a *doc.Attachment, r byteRange) error {
	c.w.Header()["Content-Range"] = []string{string(r.appendContentRange(nil, a.Length))}
	return c.sendBytes(http.StatusPartialContent, a, r)
}

// sendRanges answers several ranges as multipart/byteranges.
func (c *call) sendRanges(a *doc.Attachment, ranges []byteRange) error {
	b := boundary()
	out := c.stream(`multipart/byteranges; boundary="` + b + `"`)
	out.SetStatus(http.StatusPartialContent)
	m, err := newMixed(out, b)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		head := "Content-Type: " + headerValue(a.ContentType) + "\r\nContent-Range: "
		if err := m.part(string(r.appendContentRange([]byte(head), a.Length))); err != nil {
			return err
		}
		if err := c.copyRange(c.r.Context(), out, a, r); err != nil {
			return err
		}
		if err := m.end(); err != nil {
			return err
		}
	}
	if err := m.close(); err != nil {
		return err
	}
	return out.Close()
}

// copyRange writes a part of the stored bytes.
func (c *call) copyRange(ctx context.Context, w io.Writer, a *doc.Attachment, r byteRange) error {
	body, err := c.db.ReadAttachment(ctx, c.docID, *a, r.from, r.length())
	if err == nil {
		err = copyContent(w, body, r.length())
	}
	if err != nil {
		return fmt.Errorf("send a range of attachment %q of %q: %w", a.Name, c.docID, err)
	}
	return nil
}
