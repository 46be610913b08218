package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/url"
	"strings"

	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// formUpload is what a form brings while it is read.
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
func postForm(c *call) error {
	if err := c.checkReferer(); err != nil {
		return err
	}
	if err := c.checkPathID(); err != nil {
		return err
	}
	w, err := c.writeQuorum()
	if err != nil {
		return err
	}
	parts, err := newParts(c.partsBody(), c.r.Header.Get("Content-Type"), "multipart/form-data")
	if err != nil {
		return err
	}
	if err := c.checkID(c.docID); err != nil {
		return err
	}
	up := c.newUpload(c.docID, false)
	form, err := c.readForm(parts, up)
	if err != nil {
		up.discard()
		return err
	}
	edit, err := c.formEdit(form, up)
	if err != nil {
		up.discard()
		return err
	}
	return c.write(writeJob{edit: edit, options: &docOptions{w: w}, upload: up, etag: true, created: true})
}

// checkReferer refuses forms that another site's page sends with this user's
// cookie.
func (c *call) checkReferer() error {
	referer := c.r.Header.Get("Referer")
	if referer == "" {
		return fault.New(fault.BadRequest, "Referer header required.")
	}
	u, err := url.Parse(referer)
	_, own, _ := strings.Cut(c.baseURL(), "://")
	if err != nil || u.Host != own {
		return fault.New(fault.BadRequest, "Referer header must match host.")
	}
	return nil
}

// readForm reads the fields of a form, storing files as they come.
func (c *call) readForm(parts *parts, up *upload) (*formUpload, error) {
	form := &formUpload{names: make(map[string]bool)}
	for {
		part, err := parts.next()
		if errors.Is(err, io.EOF) {
			return form, nil
		}
		if err != nil {
			return nil, err
		}
		if err := c.readField(form, part, up); err != nil {
			return nil, err
		}
	}
}

func (c *call) readField(form *formUpload, part *part, up *upload) error {
	switch part.FormName() {
	case "_doc":
		text, err := c.readFormText(part)
		form.text, form.hasText = text, true
		return err
	case "_rev":
		text, err := c.readFormText(part)
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
		if doc.IsLocal(c.docID) {
			return fault.New(fault.BadRequest, "_local documents do not accept attachments.")
		}
		if err := doc.ValidateAttachmentName(name); err != nil {
			return err
		}
		if form.names[name] {
			return fault.New(fault.BadRequest, "Duplicate attachments")
		}
		form.names[name] = true
		a, err := up.store(content{
			name: name, contentType: part.Header.Get("Content-Type"), length: -1, identity: -1, r: part,
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
func formFileName(part *part) string {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	return params["filename"]
}

// readFormText reads a field that is no file.
func (c *call) readFormText(part *part) ([]byte, error) {
	text, err := readAll(part, -1, c.bodyLimit(0))
	switch {
	case errors.Is(err, errTooLarge):
		return nil, c.tooLarge()
	case err != nil:
		return nil, err
	}
	return text, nil
}

// formEdit makes the edit of a form. Files replace attachments of the same
// name and stand before the others.
func (c *call) formEdit(form *formUpload, up *upload) (shard.Edit, error) {
	var edit shard.Edit
	if form.hasText {
		env, err := doc.ParseEnvelope(form.text)
		if err != nil {
			return edit, err
		}
		if edit, err = c.pathEdit(&env, &docOptions{}); err != nil {
			return edit, err
		}
		if edit.Atts, err = up.attach(env.Atts, nil); err != nil {
			return edit, err
		}
	} else {
		if form.rev.IsZero() {
			return edit, fault.New(fault.BadRequest, "Invalid rev format")
		}
		d, err := c.open(cluster.OpenOptions{ID: c.docID, Rev: form.rev})
		if err != nil {
			return edit, err
		}
		edit = shard.Edit{ID: c.docID, Parent: form.rev, Body: d.Body, Atts: keptAttachments(d)}
	}
	atts := form.files
	for _, a := range edit.Atts {
		if !form.names[a.Name] {
			atts = append(atts, a)
		}
	}
	edit.Atts = atts
	return edit, c.guardEdit(&edit)
}
