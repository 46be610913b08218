package docs

import (
	"strings"

	"divan/cluster"
	"divan/httpapi/auth"
	"divan/httpapi/core"
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
func guardEdit(c *core.Call, edit *shard.Edit) error {
	if strings.HasPrefix(edit.ID, doc.DesignPrefix) {
		if !c.IsDBAdmin() {
			return refuse(c, core.TextDBOrServer)
		}
		if err := checkDesignDoc(c.API.Deps.Scripts, edit.Body, c.DB.Meta().Partitioned); err != nil {
			return err
		}
	}
	if !auth.IsUsersDatabase(c.Config, c.DB.Name()) {
		return nil
	}
	body, err := c.API.Deps.Auth.PrepareUser(c.Request.Context(), auth.UserWrite{
		ID: edit.ID, Deleted: edit.Deleted, Body: edit.Body, User: c.User, Admin: c.IsDBAdmin(),
	})
	if err != nil {
		return err
	}
	edit.Body = body
	return nil
}

// refuse is a refusal that asks nobody in particular to log in, and tells
// everybody else no.
func refuse(c *core.Call, reason string) error {
	if c.User.Anonymous {
		return fault.New(fault.Unauthorized, reason)
	}
	return fault.New(fault.Forbidden, reason)
}

// screen leaves of a document of the authentication database what this user
// may see; fault.NotFound when that is nothing.
func screen(c *core.Call, d *shard.Doc) error {
	if !auth.IsUsersDatabase(c.Config, c.DB.Name()) {
		return nil
	}
	read := auth.UserRead{
		ID: d.ID, User: c.User, Admin: c.IsDBAdmin(), Public: c.Config.ChttpdAuth.PublicFields,
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
func mayRead(c *core.Call, id string) error {
	if err := c.CheckPartition(id); err != nil {
		return err
	}
	if !auth.IsUsersDatabase(c.Config, c.DB.Name()) {
		return nil
	}
	return auth.UserRead{ID: id, User: c.User, Admin: c.IsDBAdmin()}.MayRead()
}

// screenRevs screens each revision of an answer.
func screenRevs(c *core.Call, results []shard.RevResult) error {
	for i := range results {
		if results[i].Doc == nil {
			continue
		}
		if err := screen(c, results[i].Doc); err != nil {
			return err
		}
	}
	return nil
}

// Open reads one revision for this user's eyes.
func Open(c *core.Call, q cluster.OpenOptions) (*shard.Doc, error) {
	if err := mayRead(c, q.ID); err != nil {
		return nil, err
	}
	d, err := c.DB.Open(c.Request.Context(), q)
	if err != nil {
		return nil, err
	}
	return d, screen(c, d)
}
