package docs

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// attachmentName is the name of the attachment in the path: everything after
// the document, whether its slashes were escaped or not.
func attachmentName(c *core.Call) string {
	if len(c.Rest) == 1 {
		return c.Rest[0]
	}
	return strings.Join(c.Rest, "/")
}

// refuseLocalAttachment refuses attachments of local documents.
func refuseLocalAttachment(c *core.Call) error {
	if doc.IsLocal(c.DocID) || c.DocID == "_local" {
		return fault.New(fault.BadRequest, "_local documents do not accept attachments.")
	}
	return nil
}

// getAttachment serves GET and HEAD /{db}/{docid}/{name} (api.md 10.1).
func getAttachment(c *core.Call) error {
	if redirectDesign(c) {
		return nil
	}
	if err := refuseLocalAttachment(c); err != nil {
		return err
	}
	o, err := parseDocOptions(c.Query)
	if err != nil {
		return err
	}
	q := cluster.OpenOptions{ID: c.DocID, AllowDeleted: o.deleted, R: o.r}
	if o.hasRev && !o.latest {
		q.Rev = o.rev
	}
	d, err := Open(c, q)
	if err != nil {
		return err
	}
	a := findAttachment(d, attachmentName(c))
	if a == nil {
		return errNoAttachment()
	}
	return sendAttachment(c, a)
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
func sendAttachment(c *core.Call, a *doc.Attachment) error {
	h := c.Response.Header()
	etag := `"` + base64.StdEncoding.EncodeToString(a.Digest[:]) + `"`
	h["Etag"] = []string{etag}
	h["Cache-Control"] = core.MustRevalidate
	if core.ETagMatches(c.Request, etag) {
		return c.Response.SendEmpty(http.StatusNotModified)
	}
	h["Content-Type"] = []string{docformat.HeaderValue(a.ContentType)}
	if rule := &c.Config.CSP.Attachments; rule.Enable {
		h["Content-Security-Policy"] = []string{rule.Value}
	}
	if a.Gzip {
		h["Accept-Ranges"] = []string{"none"}
		return sendGzipped(c, a)
	}
	h["Accept-Ranges"] = []string{"bytes"}
	wanted := c.Request.Header.Get("Range")
	if !rangeApplies(c, etag) {
		wanted = ""
	}
	ranges, err := parseRanges(wanted, a.Length)
	if err != nil {
		return err
	}
	switch len(ranges) {
	case 0:
		return sendStored(c, a)
	case 1:
		return sendRange(c, a, ranges[0])
	default:
		return sendRanges(c, a, ranges)
	}
}

// sendStored answers the stored bytes.
func sendStored(c *core.Call, a *doc.Attachment) error {
	return sendBytes(c, http.StatusOK, a, byteRange{0, a.StoredLength - 1})
}

// sendBytes answers a part of the stored bytes.
func sendBytes(c *core.Call, status int, a *doc.Attachment, r byteRange) error {
	c.Response.Header()["Content-Length"] = []string{strconv.FormatInt(r.length(), 10)}
	if c.Head {
		c.Response.WriteHeader(status)
		return nil
	}
	body, err := c.DB.ReadAttachment(c.Request.Context(), c.DocID, *a, r.from, r.length())
	if err != nil {
		return fmt.Errorf("open attachment %q of %q: %w", a.Name, c.DocID, err)
	}
	c.Response.WriteHeader(status)
	if err := docformat.CopyContent(c.Response, body, r.length()); err != nil {
		return fmt.Errorf("send attachment %q of %q: %w", a.Name, c.DocID, err)
	}
	return nil
}

// sendGzipped answers an attachment that is stored as gzip.
func sendGzipped(c *core.Call, a *doc.Attachment) error {
	h := c.Response.Header()
	h["Vary"] = append(h["Vary"], "Accept-Encoding")
	if core.AcceptsGzip(c.Request) {
		h["Content-Encoding"] = []string{"gzip"}
		return sendStored(c, a)
	}
	// A client that compressed the content itself has told no other length
	// than that of what it sent.
	if a.Length != a.StoredLength {
		h["Content-Length"] = []string{strconv.FormatInt(a.Length, 10)}
	}
	if c.Head {
		c.Response.WriteHeader(http.StatusOK)
		return nil
	}
	body, err := docformat.OpenIdentity(c.Request.Context(), c.DB, c.DocID, a)
	if err != nil {
		return err
	}
	c.Response.WriteHeader(http.StatusOK)
	if err := docformat.CopyContent(c.Response, body, -1); err != nil {
		return fmt.Errorf("send attachment %q of %q: %w", a.Name, c.DocID, err)
	}
	return nil
}

// sendRange answers one range.
func sendRange(c *core.Call, a *doc.Attachment, r byteRange) error {
	c.Response.Header()["Content-Range"] = []string{string(r.appendContentRange(nil, a.Length))}
	return sendBytes(c, http.StatusPartialContent, a, r)
}

// sendRanges answers several ranges as multipart/byteranges.
func sendRanges(c *core.Call, a *doc.Attachment, ranges []byteRange) error {
	b := docformat.Boundary()
	out := c.Stream(`multipart/byteranges; boundary="` + b + `"`)
	out.SetStatus(http.StatusPartialContent)
	m, err := docformat.NewMixed(out, b)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		head := "Content-Type: " + docformat.HeaderValue(a.ContentType) + "\r\nContent-Range: "
		if err := m.Part(string(r.appendContentRange([]byte(head), a.Length))); err != nil {
			return err
		}
		if err := copyRange(c.Request.Context(), c, out, a, r); err != nil {
			return err
		}
		if err := m.End(); err != nil {
			return err
		}
	}
	if err := m.Close(); err != nil {
		return err
	}
	return out.Close()
}

// copyRange writes a part of the stored bytes.
func copyRange(ctx context.Context, c *core.Call, w io.Writer, a *doc.Attachment, r byteRange) error {
	body, err := c.DB.ReadAttachment(ctx, c.DocID, *a, r.from, r.length())
	if err == nil {
		err = docformat.CopyContent(w, body, r.length())
	}
	if err != nil {
		return fmt.Errorf("send a range of attachment %q of %q: %w", a.Name, c.DocID, err)
	}
	return nil
}
