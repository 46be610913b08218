package design

import (
	"net/http"

	"divan/httpapi/core"
	"divan/httpapi/docs"
	"divan/storage/doc"
)

// update serves _design/{ddoc}/_update/{function}[/{docid}].
func update(c *core.Call) error {
	t, err := find(c, "updates", "update_error")
	if err != nil {
		return err
	}
	req, err := Request(c, t.id)
	if err != nil {
		return err
	}
	made, object, err := t.ddoc.Functions().Update(c.Request.Context(), t.name, t.text(), req)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if doc.IsObject(made) {
		if status, err = save(c, made); err != nil {
			return err
		}
	}
	a, err := parseAnswer(object)
	if err != nil {
		return err
	}
	return a.send(c, status)
}

// save writes the document that a function has made, and returns the status that
// says so.
func save(c *core.Call, text []byte) (status int, err error) {
	id, result, err := docs.Save(c, text)
	if err != nil {
		return 0, err
	}
	h := c.Response.Header()
	if valid("X-Couch-Id", id) {
		h["X-Couch-Id"] = []string{id}
	}
	h["X-Couch-Update-Newrev"] = []string{result.Rev.String()}
	if result.Accepted {
		return http.StatusAccepted, nil
	}
	return http.StatusCreated, nil
}

// noUpdateByGet refuses GET, which must not change anything.
func noUpdateByGet(c *core.Call) error {
	failure := core.Failure{
		Status: http.StatusMethodNotAllowed, Name: "method_not_allowed", Reason: "Update functions do not allow GET",
	}
	return c.Response.SendJSON(failure.Status, failure.AppendJSON(nil))
}
