package docs

import (
	"crypto/md5"
	"encoding/base64"
	"net/http"

	"divan/cluster"
	"divan/cluster/access"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Local documents (api.md 9.5) are read here; writing them takes the same way
// as any document, the shard tells them by their id.

// openLocal reads a local document as if it were a revision of another one.
func openLocal(c *core.Call, id string) (*shard.Doc, error) {
	if err := c.Rights().May(access.Contents); err != nil {
		return nil, err
	}
	l, err := c.DB.LocalGet(c.Request.Context(), id)
	if err != nil {
		return nil, err
	}
	return &shard.Doc{ID: l.ID, Rev: l.DocRev(), Body: l.Body}, nil
}

// getLocal answers a local document. There is no way to name a revision, and
// of the options only revs says something.
func getLocal(c *core.Call, o *docOptions) error {
	if o.hasRev && !o.latest || o.open.given() {
		return fault.New(fault.NotFound, "missing")
	}
	d, err := openLocal(c, c.DocID)
	if err != nil {
		return err
	}
	if o.revs {
		d.Revisions = doc.Path{IDs: []string{d.Rev.ID}}
	}
	etag := localETag(d)
	c.Response.Header()["Etag"] = []string{etag}
	if core.ETagMatches(c.Request, etag) {
		return c.Response.SendEmpty(http.StatusNotModified)
	}
	return sendDoc(c, d, docformat.Style{Revisions: o.revs})
}

// localETag is the entity tag of a local document. Its revision would not do:
// it starts again with every write that names none.
func localETag(d *shard.Doc) string {
	sum := md5.Sum(append(d.Rev.AppendText(nil), d.Body...))
	return `"` + base64.StdEncoding.EncodeToString(sum[:]) + `"`
}

// localExists says whether there is a local document of that name, as
// fault.NotFound when there is none.
func localExists(c *core.Call, id string) error {
	_, err := c.DB.LocalGet(c.Request.Context(), id)
	return err
}

// openAny opens the winner, or a named revision, of any kind of document.
func openAny(c *core.Call, id string, rev doc.Rev) (*shard.Doc, error) {
	if !doc.IsLocal(id) {
		return Open(c, cluster.OpenOptions{ID: id, Rev: rev})
	}
	if !rev.IsZero() {
		return nil, fault.New(fault.NotFound, "missing")
	}
	return openLocal(c, id)
}
