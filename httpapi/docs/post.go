package docs

import (
	"divan/httpapi/core"
	"divan/storage/doc"
)

// postDocument serves POST /{db}: a document whose id is in its body, or made
// here. A revision counts only when it is in the body (api.md 8.1).
func postDocument(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	o, err := parseDocOptions(c.Query)
	if err != nil {
		return err
	}
	text, err := c.Body.ReadDocument()
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
		id = c.NewID()
		env.HasRev, env.HasRevisions = false, false
	}
	edit, err := edit(c, id, &env)
	if err != nil {
		return err
	}
	if edit, err = finishEdit(edit, false); err != nil {
		return err
	}
	if err := c.Rights().Prepare(c.Request.Context(), &edit); err != nil {
		return err
	}
	up := newUpload(c, id, false)
	if edit.Atts, err = up.attach(env.Atts, nil); err != nil {
		return err
	}
	return write(c, writeJob{edit: edit, options: &o, upload: up, location: true, created: true})
}
