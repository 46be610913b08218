package httpapi

import (
	"crypto/md5"
	"encoding/base64"
	"net/http"
	"strconv"

	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Local documents (api.md 9.5) are read here; writing them takes the same way
// as any document, the shard tells them by their id.

// localRev is the revision of a local document as clients see it, "0-N".
func localRev(n uint64) doc.Rev { return doc.Rev{ID: strconv.FormatUint(n, 10)} }

// openLocal reads a local document as if it were a revision of another one.
func (c *call) openLocal(id string) (*shard.Doc, error) {
	l, err := c.db.LocalGet(c.r.Context(), id)
	if err != nil {
		return nil, err
	}
	return &shard.Doc{ID: l.ID, Rev: localRev(l.Rev), Body: l.Body}, nil
}

// getLocal answers a local document. There is no way to name a revision, and
// of the options only revs says something.
func (c *call) getLocal(o *docOptions) error {
	if o.hasRev && !o.latest || o.open.given() {
		return fault.New(fault.NotFound, "missing")
	}
	d, err := c.openLocal(c.docID)
	if err != nil {
		return err
	}
	if o.revs {
		d.Revisions = doc.Path{IDs: []string{d.Rev.ID}}
	}
	etag := localETag(d)
	c.w.Header()["Etag"] = []string{etag}
	if c.etagMatches(etag) {
		return c.sendEmpty(http.StatusNotModified)
	}
	return c.sendDoc(d, docStyle{revisions: o.revs})
}

// localETag is the entity tag of a local document. Its revision would not do:
// it starts again with every write that names none.
func localETag(d *shard.Doc) string {
	sum := md5.Sum(append(d.Rev.AppendText(nil), d.Body...))
	return `"` + base64.StdEncoding.EncodeToString(sum[:]) + `"`
}

// localExists says whether there is a local document of that name, as
// fault.NotFound when there is none.
func (c *call) localExists(id string) error {
	_, err := c.db.LocalGet(c.r.Context(), id)
	return err
}

// openAny opens the winner, or a named revision, of any kind of document.
func (c *call) openAny(id string, rev doc.Rev) (*shard.Doc, error) {
	if !doc.IsLocal(id) {
		return c.open(cluster.OpenOptions{ID: id, Rev: rev})
	}
	if !rev.IsZero() {
		return nil, fault.New(fault.NotFound, "missing")
	}
	return c.openLocal(id)
}
