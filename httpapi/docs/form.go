package docs

import (
	"errors"
	"io"
	"mime"
	"net/url"
	"strings"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// formUpload collects the parts of a form while it is read.
type formUpload struct {
	text    []byte  // of _doc
	hasText bool    // _doc is there
	rev     doc.Rev // of _rev
	files   []shard.EditAttachment
	names   map[string]bool // of files
}

// postForm serves POST /{db}/{docid}: a multipart/form-data upload as a web
// page sends it, with a field _doc (a document) or _rev (the revision that
// keeps its body and its other attachments), and files named _attachments
// (api.md 9.4).
func postForm(c *core.Call) error {
	if err := checkReferer(c); err != nil {
		return err
	}
	if err := checkPathID(c); err != nil {
		return err
	}
	w, err := c.WriteQuorum()
	if err != nil {
		return err
	}
	parts, err := docformat.NewParts(c.Body.Parts(), c.Request.Header.Get("Content-Type"), "multipart/form-data")
	if err != nil {
		return err
	}
	if err := c.Rights().CheckID(c.DocID); err != nil {
		return err
	}
	up := newUpload(c, c.DocID, false)
	form, err := readForm(c, parts, up)
	if err != nil {
		up.discard()
		return err
	}
	edit, err := formEdit(c, form, up)
	if err != nil {
		up.discard()
		return err
	}
	return write(c, writeJob{edit: edit, options: &docOptions{w: w}, upload: up, etag: true, created: true})
}

// checkReferer refuses forms that another site's page sends with this user's
// cookie.
func checkReferer(c *core.Call) error {
	referer := c.Request.Header.Get("Referer")
	if referer == "" {
		return fault.New(fault.BadRequest, "Referer header required.")
	}
	u, err := url.Parse(referer)
	_, own, _ := strings.Cut(c.BaseURL(), "://")
	if err != nil || u.Host != own {
		return fault.New(fault.BadRequest, "Referer header must match host.")
	}
	return nil
}

// readForm reads the fields of a form, storing files as they come.
func readForm(c *core.Call, parts *docformat.Parts, up *upload) (*formUpload, error) {
	form := &formUpload{names: make(map[string]bool)}
	for {
		part, err := parts.Next()
		if errors.Is(err, io.EOF) {
			return form, nil
		}
		if err != nil {
			return nil, err
		}
		if err := readField(c, form, part, up); err != nil {
			return nil, err
		}
	}
}

// partSpace is about how many bytes a file takes beside its name.
const partSpace = 512

func readField(c *core.Call, form *formUpload, part *docformat.Part, up *upload) error {
	switch part.FormName() {
	case "_doc":
		text, err := c.Body.ReadPart(part)
		form.text, form.hasText = text, true
		return err
	case "_rev":
		text, err := c.Body.ReadPart(part)
		if err != nil {
			return err
		}
		form.rev, err = doc.ParseRev(strings.TrimSpace(string(text)))
		return err
	case "_attachments":
		name := formFileName(part)
		if name == "" {
			return nil // the page's file field was left empty
		}
		if doc.IsLocal(c.DocID) {
			return fault.New(fault.BadRequest, "_local documents do not accept attachments.")
		}
		if err := doc.ValidateAttachmentName(name); err != nil {
			return err
		}
		if form.names[name] {
			return fault.New(fault.BadRequest, "Duplicate attachments")
		}
		if err := c.Memory.Take(len(name) + partSpace); err != nil {
			return err
		}
		form.names[name] = true
		a, err := up.store(content{
			name: name, contentType: part.Header.Get("Content-Type"), length: -1, identity: -1, part: true, r: part,
		})
		if err == nil {
			form.files = append(form.files, a)
		}
		return err
	}
	return nil
}

// formFileName returns the name of a file as the form gives it: with its
// slashes, which the standard library would cut off.
func formFileName(part *docformat.Part) string {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	return params["filename"]
}

// formEdit makes the edit of a form. Files replace attachments of the same
// name and stand before the others.
func formEdit(c *core.Call, form *formUpload, up *upload) (shard.Edit, error) {
	var edit shard.Edit
	if form.hasText {
		env, err := doc.ParseEnvelope(form.text)
		if err != nil {
			return edit, err
		}
		if edit, err = pathEdit(c, &env, &docOptions{}); err != nil {
			return edit, err
		}
		if edit.Atts, err = up.attach(env.Atts, nil); err != nil {
			return edit, err
		}
	} else {
		if form.rev.IsZero() {
			return edit, fault.New(fault.BadRequest, "Invalid rev format")
		}
		d, err := Open(c, cluster.OpenOptions{ID: c.DocID, Rev: form.rev})
		if err != nil {
			return edit, err
		}
		edit = shard.Edit{ID: c.DocID, Parent: form.rev, Body: d.Body, Atts: keptAttachments(d)}
	}
	atts := form.files
	for _, a := range edit.Atts {
		if !form.names[a.Name] {
			atts = append(atts, a)
		}
	}
	edit.Atts = atts
	return edit, c.Rights().Prepare(c.Request.Context(), &edit)
}
