package design

import (
	"net/http"
	"strings"

	"divan/cluster"
	"divan/cluster/designdocs"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/httpapi/docs"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// show serves _design/{ddoc}/_show/{function}[/{docid}].
func show(c *core.Call) error {
	t, err := find(c, "shows", "show_error")
	if err != nil {
		return err
	}
	etag := t.etag(c)
	h := c.Response.Header()
	h["Etag"], h["Vary"] = []string{etag}, []string{"Accept"}
	if core.ETagMatches(c.Request, etag) {
		return c.Response.SendEmpty(http.StatusNotModified)
	}
	req, err := Request(c, t.id)
	if err != nil {
		return err
	}
	object, err := t.ddoc.Functions().Show(c.Request.Context(), t.name, t.text(), req)
	if err != nil {
		return err
	}
	a, err := parseAnswer(object)
	if err != nil {
		return err
	}
	return a.send(c, http.StatusOK, "Etag", "Vary")
}

// target is a function of a design document and the document it is about.
type target struct {
	ddoc *designdocs.Document
	name string     // of the function
	id   *string    // of the document; nil: there is none in the path
	doc  *shard.Doc // nil: it does not exist
}

// find finds what the path names: a function of a group, and perhaps a document.
// failure is the error name of a path without a function.
func find(c *core.Call, group, failure string) (*target, error) {
	c.ForAccount()
	d, err := c.API.Deps.Designs.Get(c.Request.Context(), c.DB, c.DocID)
	if err != nil {
		return nil, err
	}
	if len(c.Rest) < 2 {
		return nil, invalidPath(failure)
	}
	t := &target{ddoc: d, name: c.Rest[1]}
	if err := HasFunction(d, group, t.name); err != nil {
		return nil, err
	}
	if len(c.Rest) == 2 {
		return t, nil
	}
	id := strings.Join(c.Rest[2:], "/")
	t.id = &id
	t.doc, err = docs.Open(c, cluster.OpenOptions{ID: id, Revs: true, Conflicts: true})
	if fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) {
		return t, nil
	}
	return t, err
}

// invalidPath refuses a path that names no function.
func invalidPath(failure string) error {
	return &fault.Error{Kind: fault.NotFound, Code: failure, Reason: "Invalid path."}
}

// HasFunction refuses the name of a function that a design document does not have.
func HasFunction(d *designdocs.Document, group, name string) error {
	functions := d.Member(group)
	if functions == nil {
		return fault.New(fault.NotFound, "missing json key: "+group)
	}
	if doc.Lookup(functions, name) == nil {
		return fault.New(fault.NotFound, "missing json key: "+name)
	}
	return nil
}

// text returns the document as the function sees it.
func (t *target) text() []byte {
	if t.doc == nil {
		return []byte("null")
	}
	return docformat.Style{Revisions: true}.Append(nil, t.doc)
}

// etag stands for all that the answer depends on and that stays the same.
func (t *target) etag(c *core.Call) string {
	parts := []string{t.ddoc.Rev.String(), c.Request.RequestURI, c.Request.Header.Get("Accept"), c.User.Name}
	if t.doc != nil {
		parts = append(parts, t.doc.Rev.String())
		for _, r := range t.doc.Conflicts {
			parts = append(parts, r.String())
		}
	}
	parts = append(parts, c.User.Roles...)
	return `"` + core.HashOf([]byte(strings.Join(parts, "\x00"))) + `"`
}
