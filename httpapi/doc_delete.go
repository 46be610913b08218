package httpapi

import (
	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
)

// deleteDocument serves DELETE /{db}/{docid}: a tombstone without a body, on
// top of the revision in ?rev= or If-Match (api.md 9.4).
func deleteDocument(c *call) error {
	o, err := parseDocOptions(c.query)
	if err != nil {
		return err
	}
	if err := c.checkPathID(); err != nil {
		return err
	}
	// What is not there, or no more, is told before a wrong revision is.
	if doc.IsLocal(c.docID) {
		err = c.localExists(c.docID)
	} else {
		_, err = c.open(cluster.OpenOptions{ID: c.docID, R: o.r})
	}
	if err != nil {
		return err
	}
	rev, err := c.requestRev(&o)
	if err != nil {
		return err
	}
	o.batch, o.replicated = false, false // those are for a PUT (api.md 9.3)
	edit := shard.Edit{ID: c.docID, Parent: rev, Deleted: true, Body: emptyBody()}
	if err := c.guardEdit(&edit); err != nil {
		return err
	}
	return c.write(writeJob{edit: edit, options: &o, etag: true})
}

// emptyBody is the body of a document without members.
func emptyBody() []byte { return []byte("{}") }
