package httpapi

import (
	"divan/storage/doc"
)

// postDocument serves POST /{db}: a document whose id is in its body, or made
// here. A revision counts only when it is in the body (api.md 8.1).
func postDocument(c *call) error {
	if err := c.requireJSON(); err != nil {
		return err
	}
	o, err := parseDocOptions(c.query)
	if err != nil {
		return err
	}
	text, err := c.readBody(0)
	if err != nil {
		return err
	}
	env, err := doc.ParseEnvelope(text)
	if err != nil {
		return err
	}
	o.replicated = false
	id := env.ID
	if !env.HasID {
		id = c.newID()
		env.HasRev, env.HasRevisions = false, false
	}
	edit, err := c.edit(id, &env)
	if err != nil {
		return err
	}
	if edit, err = finishEdit(edit, false); err != nil {
		return err
	}
	if err := c.guardEdit(&edit); err != nil {
		return err
	}
	up := c.newUpload(id, false)
	if edit.Atts, err = up.attach(env.Atts, nil); err != nil {
		return err
	}
	return c.write(writeJob{edit: edit, options: &o, upload: up, location: true, created: true})
}
