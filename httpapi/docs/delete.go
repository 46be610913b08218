package docs

import (
	"divan/cluster"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
)

// deleteDocument serves DELETE /{db}/{docid}: a tombstone without a body, on
// top of the revision in ?rev= or If-Match (api.md 9.4).
func deleteDocument(c *core.Call) error {
	o, err := parseDocOptions(c.Query)
	if err != nil {
		return err
	}
	if err := checkPathID(c); err != nil {
		return err
	}
	// What is not there, or no more, is told before a wrong revision is.
	if doc.IsLocal(c.DocID) {
		err = localExists(c, c.DocID)
	} else {
		_, err = Open(c, cluster.OpenOptions{ID: c.DocID, R: o.r})
	}
	if err != nil {
		return err
	}
	rev, err := requestRev(c, &o)
	if err != nil {
		return err
	}
	o.batch, o.replicated = false, false // those are for a PUT (api.md 9.3)
	edit := shard.Edit{ID: c.DocID, Parent: rev, Deleted: true, Body: emptyBody()}
	if err := c.Rights().Prepare(c.Request.Context(), &edit); err != nil {
		return err
	}
	return write(c, writeJob{edit: edit, options: &o, etag: true})
}

// emptyBody is the body of a document without members.
func emptyBody() []byte { return []byte("{}") }
