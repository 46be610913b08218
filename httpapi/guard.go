package httpapi

import (
	"strings"

	"divan/cluster"
	"divan/httpapi/auth"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// This file holds what documents of a special kind need beside the rules that
// every document has: design documents, and the documents of the
// authentication database.

// guardEdit refuses an edit that this user may not make, or that would store
// a malformed design document, and turns passwords into hashes. It is called
// before content of attachments is taken.
func (c *call) guardEdit(edit *shard.Edit) error {
	if strings.HasPrefix(edit.ID, doc.DesignPrefix) {
		if !c.isDBAdmin() {
			return c.refuse(textDBOrServer)
		}
		if err := checkDesignDoc(edit.Body, c.db.Meta().Partitioned); err != nil {
			return err
		}
	}
	if !auth.IsUsersDatabase(c.cfg, c.db.Name()) {
		return nil
	}
	body, err := c.api.deps.Auth.PrepareUser(c.r.Context(), auth.UserWrite{
		ID: edit.ID, Deleted: edit.Deleted, Body: edit.Body, User: c.user, Admin: c.isDBAdmin(),
	})
	if err != nil {
		return err
	}
	edit.Body = body
	return nil
}

// refuse is a refusal that asks nobody in particular to log in, and tells
// everybody else no.
func (c *call) refuse(reason string) error {
	if c.user.Anonymous {
		return fault.New(fault.Unauthorized, reason)
	}
	return fault.New(fault.Forbidden, reason)
}

// screen leaves of a document of the authentication database what this user
// may see; fault.NotFound when that is nothing.
func (c *call) screen(d *shard.Doc) error {
	if !auth.IsUsersDatabase(c.cfg, c.db.Name()) {
		return nil
	}
	read := auth.UserRead{
		ID: d.ID, User: c.user, Admin: c.isDBAdmin(), Public: c.cfg.ChttpdAuth.PublicFields,
	}
	body, err := read.Visible(d.Body)
	if err != nil {
		return err
	}
	d.Body = body
	if !read.Whole() {
		d.Atts = nil
	}
	return nil
}

// mayRead refuses to look for a document that cannot be, and for one that this
// user may not know about, whether it exists or not.
func (c *call) mayRead(id string) error {
	if err := c.checkPartition(id); err != nil {
		return err
	}
	if !auth.IsUsersDatabase(c.cfg, c.db.Name()) {
		return nil
	}
	return auth.UserRead{ID: id, User: c.user, Admin: c.isDBAdmin()}.MayRead()
}

// screenRevs screens each revision of an answer.
func (c *call) screenRevs(results []shard.RevResult) error {
	for i := range results {
		if results[i].Doc == nil {
			continue
		}
		if err := c.screen(results[i].Doc); err != nil {
			return err
		}
	}
	return nil
}

// open reads one revision for this user's eyes.
func (c *call) open(q cluster.OpenOptions) (*shard.Doc, error) {
	if err := c.mayRead(q.ID); err != nil {
		return nil, err
	}
	d, err := c.db.Open(c.r.Context(), q)
	if err != nil {
		return nil, err
	}
	return d, c.screen(d)
}
