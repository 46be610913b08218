package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
)

// getDocument serves GET and HEAD /{db}/{docid} (api.md 9.1).
func getDocument(c *call) error {
	if err := c.checkPathID(); err != nil {
		return err
	}
	if c.redirectDesign() {
		return nil
	}
	o, err := parseDocOptions(c.query)
	if err != nil {
		return err
	}
	switch {
	case doc.IsLocal(c.docID):
		return c.getLocal(&o)
	case o.open.given():
		return c.getOpenRevs(&o)
	}
	d, err := c.openDoc(&o)
	if err != nil {
		return err
	}
	etag := ""
	if len(d.RevsInfo) == 0 && len(d.Conflicts) == 0 && len(d.DeletedConflicts) == 0 && d.LocalSeq == 0 {
		etag = quoteRev(d.Rev)
		c.w.Header()["Etag"] = []string{etag}
	}
	if etag != "" && c.etagMatches(etag) {
		return c.sendEmpty(http.StatusNotModified)
	}
	return c.sendDoc(d, o.style())
}

// redirectDesign answers GET of "_design%2Fname" with the address that has a
// bare slash (api.md 1.1).
func (c *call) redirectDesign() bool {
	name, ok := strings.CutPrefix(c.path[1], doc.DesignPrefix)
	if !ok || name == "" {
		return false
	}
	b := append(appendEscaped(append([]byte(c.baseURL()), '/'), c.dbName), "/_design/"...)
	b = appendEscaped(b, name)
	if c.r.URL.RawQuery != "" {
		b = append(append(b, '?'), c.r.URL.RawQuery...)
	}
	c.w.Header()["Location"] = []string{string(b)}
	_ = c.sendEmpty(http.StatusMovedPermanently)
	return true
}

// openDoc reads the revision that the options name. With latest it is the
// winner whatever rev says; what concerns the winner only is not asked for
// when another revision is named.
func (c *call) openDoc(o *docOptions) (*shard.Doc, error) {
	q := cluster.OpenOptions{
		ID: c.docID, Revs: o.revs || o.style().needsPath(), AllowDeleted: o.deleted, R: o.r,
	}
	if o.hasRev && !o.latest {
		q.Rev = o.rev
	} else {
		q.RevsInfo, q.Conflicts, q.DeletedConflicts, q.LocalSeq = o.revsInfo, o.conflicts, o.deletedConflicts, o.localSeq
	}
	return c.open(q)
}

// sendDoc answers a document as JSON, or as multipart/related when content of
// attachments is asked for and the client takes that (CouchDB prefers it over
// JSON whatever the qualities say).
func (c *call) sendDoc(d *shard.Doc, style docStyle) error {
	if style.inline(d) {
		if c.accepts("multipart/related") {
			return c.sendRelated(d, style)
		}
		return c.streamDoc(d, style)
	}
	return c.sendAppended(http.StatusOK, func(dst []byte) []byte { return style.appendDoc(dst, d) })
}

// streamDoc answers a document with attachments inside its JSON.
func (c *call) streamDoc(d *shard.Doc, style docStyle) error {
	out := c.stream("")
	if err := out.writeDoc(c.r.Context(), d, style); err != nil {
		return err
	}
	if _, err := out.WriteString("\n"); err != nil {
		return err
	}
	return out.Close()
}

// sendRelated answers a document and its attachments as multipart/related.
func (c *call) sendRelated(d *shard.Doc, style docStyle) error {
	style.follows, style.encoding = true, true
	m := related{boundary: boundary(), id: d.ID, atts: style.withContent(d), json: style.appendDoc(nil, d)}
	h := c.w.Header()
	h["Content-Type"] = []string{m.contentType()}
	h["Content-Length"] = []string{strconv.FormatInt(m.size(), 10)}
	c.w.WriteHeader(http.StatusOK)
	if c.head {
		return nil
	}
	return m.write(c.r.Context(), c.w, c.db)
}
