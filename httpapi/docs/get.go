package docs

import (
	"net/http"
	"strconv"
	"strings"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
)

// getDocument serves GET and HEAD /{db}/{docid} (api.md 9.1).
func getDocument(c *core.Call) error {
	if err := checkPathID(c); err != nil {
		return err
	}
	if redirectDesign(c) {
		return nil
	}
	o, err := parseDocOptions(c.Query)
	if err != nil {
		return err
	}
	switch {
	case doc.IsLocal(c.DocID):
		return getLocal(c, &o)
	case o.open.given():
		return getOpenRevs(c, &o)
	}
	d, err := openDoc(c, &o)
	if err != nil {
		return err
	}
	etag := ""
	if len(d.RevsInfo) == 0 && len(d.Conflicts) == 0 && len(d.DeletedConflicts) == 0 && d.LocalSeq == 0 {
		etag = quoteRev(d.Rev)
		c.Response.Header()["Etag"] = []string{etag}
	}
	if etag != "" && core.ETagMatches(c.Request, etag) {
		return c.Response.SendEmpty(http.StatusNotModified)
	}
	return sendDoc(c, d, o.style())
}

// redirectDesign answers GET of "_design%2Fname", and of what is below it, with the
// address that has a bare slash (api.md 1.1).
func redirectDesign(c *core.Call) bool {
	name, ok := strings.CutPrefix(c.Path[1], doc.DesignPrefix)
	if !ok || name == "" {
		return false
	}
	b := append(core.AppendEscaped(append([]byte(c.BaseURL()), '/'), c.DBName), "/_design/"...)
	b = core.AppendEscaped(b, name)
	for _, segment := range c.Path[2:] {
		b = core.AppendEscaped(append(b, '/'), segment)
	}
	if c.Request.URL.RawQuery != "" {
		b = append(append(b, '?'), c.Request.URL.RawQuery...)
	}
	c.Response.Header()["Location"] = []string{string(b)}
	_ = c.Response.SendEmpty(http.StatusMovedPermanently)
	return true
}

// openDoc reads the revision that the options name. With latest it is the winner, no
// matter what rev says; members about the winner only are not asked for when another
// revision is named.
func openDoc(c *core.Call, o *docOptions) (*shard.Doc, error) {
	q := cluster.OpenOptions{
		ID: c.DocID, Revs: o.revs || o.style().NeedsPath(), AllowDeleted: o.deleted, R: o.r,
	}
	if o.hasRev && !o.latest {
		q.Rev = o.rev
	} else {
		q.RevsInfo, q.Conflicts, q.DeletedConflicts, q.LocalSeq = o.revsInfo, o.conflicts, o.deletedConflicts, o.localSeq
	}
	return Open(c, q)
}

// sendDoc answers a document as JSON, or as multipart/related when content of attachments
// is asked for and the client takes that (CouchDB prefers it over JSON, no matter what the
// qualities say).
func sendDoc(c *core.Call, d *shard.Doc, style docformat.Style) error {
	if style.Inlines(d) {
		if core.Accepts(c.Request, "multipart/related") {
			return sendRelated(c, d, style)
		}
		return streamDoc(c, d, style)
	}
	return c.Response.SendAppended(http.StatusOK, func(dst []byte) []byte { return style.Append(dst, d) })
}

// streamDoc answers a document with attachments inside its JSON.
func streamDoc(c *core.Call, d *shard.Doc, style docformat.Style) error {
	out := c.Stream("")
	if err := out.WriteDoc(c.Request.Context(), d, style); err != nil {
		return err
	}
	if _, err := out.WriteString("\n"); err != nil {
		return err
	}
	return out.Close()
}

// sendRelated answers a document and its attachments as multipart/related.
func sendRelated(c *core.Call, d *shard.Doc, style docformat.Style) error {
	style.Follows, style.EncodingInfo = true, true
	m := docformat.Related{Boundary: docformat.Boundary(), ID: d.ID, Atts: style.WithContent(d), JSON: style.Append(nil, d)}
	h := c.Response.Header()
	h["Content-Type"] = []string{m.ContentType()}
	h["Content-Length"] = []string{strconv.FormatInt(m.Size(), 10)}
	c.Response.WriteHeader(http.StatusOK)
	if c.Head {
		return nil
	}
	return m.Write(c.Request.Context(), c.Response, c.DB)
}

// Open reads one revision for this user's eyes.
func Open(c *core.Call, q cluster.OpenOptions) (*shard.Doc, error) {
	rights := c.Rights()
	if err := rights.Read(q.ID); err != nil {
		return nil, err
	}
	d, err := c.DB.Open(c.Request.Context(), q)
	if err != nil {
		return nil, err
	}
	return d, rights.Screen(d)
}

// screenRevs screens each revision of an answer.
func screenRevs(c *core.Call, results []shard.RevResult) error {
	rights := c.Rights()
	for i := range results {
		if results[i].Doc == nil {
			continue
		}
		if err := rights.Screen(results[i].Doc); err != nil {
			return err
		}
	}
	return nil
}
