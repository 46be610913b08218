package docs

import (
	"divan/cluster"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
)

// Save writes a document that a function of a design document has made, by the rules
// of PUT. The outcome of the edit is its error, too.
func Save(c *core.Call, text []byte) (id string, result shard.EditResult, err error) {
	env, err := doc.ParseEnvelope(text)
	if err != nil {
		return "", result, err
	}
	made, err := edit(c, env.ID, &env)
	if err == nil {
		made, err = finishEdit(made, false)
	}
	if err == nil {
		err = c.Rights().Prepare(c.Request.Context(), &made)
	}
	if err != nil {
		return env.ID, result, err
	}
	up := newUpload(c, made.ID, false)
	if made.Atts, err = up.attach(env.Atts, nil); err != nil {
		return env.ID, result, err
	}
	result, err = commit(c, &made, up, cluster.UpdateOptions{NewEdits: true, User: c.User})
	return env.ID, result, err
}

// commit writes one edit. Content that was uploaded for one that is refused is given
// back.
func commit(c *core.Call, e *shard.Edit, up *upload, o cluster.UpdateOptions) (shard.EditResult, error) {
	edits := []shard.Edit{*e}
	results, err := c.DB.Update(c.Request.Context(), o, edits)
	c.Rights().Written(e.ID)
	if err == nil {
		countEdits(c.API.Stats, edits, results)
		err = results[0].Err
	}
	if err != nil {
		up.settle(err)
		return shard.EditResult{}, err
	}
	return results[0], nil
}
