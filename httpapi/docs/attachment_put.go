package docs

import (
	"strings"

	"divan/cluster"
	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// putAttachment serves PUT /{db}/{docid}/{name}: the content streams into the
// database, then one edit adds it to the document (api.md 10.2).
func putAttachment(c *core.Call) error {
	o, err := attachmentOptions(c)
	if err != nil {
		return err
	}
	name := attachmentName(c)
	if err := doc.ValidateAttachmentName(name); err != nil {
		return err
	}
	rev, err := requestRev(c, &o)
	if err != nil {
		return err
	}
	edit := shard.Edit{ID: c.DocID, Parent: rev, Body: emptyBody()}
	if !rev.IsZero() {
		d, err := parentOfAttachment(c, rev)
		if err != nil {
			return err
		}
		edit.Body, edit.Atts = d.Body, otherAttachments(d, name)
	}
	if err := c.Rights().Prepare(c.Request.Context(), &edit); err != nil {
		return err
	}
	up := newUpload(c, c.DocID, false)
	in := content{name: name, contentType: c.Request.Header.Get("Content-Type"), length: c.Request.ContentLength, identity: -1}
	switch strings.ToLower(strings.TrimSpace(c.Request.Header.Get("Content-Encoding"))) {
	case "", "identity":
	case "gzip":
		in.gzip = true
	default:
		return fault.New(fault.BadContentType, "Only gzip and identity content-encodings are supported")
	}
	in.r = c.Body.Upload()
	a, err := up.store(in)
	if err != nil {
		return err
	}
	edit.Atts = append([]shard.EditAttachment{a}, edit.Atts...)
	return write(c, writeJob{edit: edit, options: &o, upload: up, location: true, part: name})
}

// attachmentOptions checks the document of the path and reads the options of
// an attachment write.
func attachmentOptions(c *core.Call) (docOptions, error) {
	if err := refuseLocalAttachment(c); err != nil {
		return docOptions{}, err
	}
	if err := c.Rights().CheckID(c.DocID); err != nil {
		return docOptions{}, err
	}
	o, err := parseDocOptions(c.Query)
	o.batch, o.replicated = false, false
	return o, err
}

// parentOfAttachment opens the revision that an attachment write names.
func parentOfAttachment(c *core.Call, rev doc.Rev) (*shard.Doc, error) {
	d, err := Open(c, cluster.OpenOptions{ID: c.DocID, Rev: rev})
	if fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoDatabase) {
		return nil, fault.New(fault.MissingRev, "missing_rev")
	}
	return d, err
}

// otherAttachments keeps all attachments of a revision but one.
func otherAttachments(d *shard.Doc, name string) []shard.EditAttachment {
	atts := make([]shard.EditAttachment, 0, len(d.Atts)+1)
	for i := range d.Atts {
		if d.Atts[i].Name != name {
			atts = append(atts, stubOf(&d.Atts[i]))
		}
	}
	return atts
}

// keptAttachments keeps all attachments of a revision.
func keptAttachments(d *shard.Doc) []shard.EditAttachment {
	atts := make([]shard.EditAttachment, len(d.Atts))
	for i := range d.Atts {
		atts[i] = stubOf(&d.Atts[i])
	}
	return atts
}

// deleteAttachment serves DELETE /{db}/{docid}/{name}.
func deleteAttachment(c *core.Call) error {
	o, err := attachmentOptions(c)
	if err != nil {
		return err
	}
	rev, err := requestRev(c, &o)
	if err != nil {
		return err
	}
	var d *shard.Doc
	if rev.IsZero() {
		d, err = Open(c, cluster.OpenOptions{ID: c.DocID})
	} else {
		d, err = parentOfAttachment(c, rev)
	}
	if err != nil {
		return err
	}
	name := attachmentName(c)
	if findAttachment(d, name) == nil {
		return errNoAttachment()
	}
	edit := shard.Edit{ID: c.DocID, Parent: rev, Body: d.Body, Atts: otherAttachments(d, name)}
	if err := c.Rights().Prepare(c.Request.Context(), &edit); err != nil {
		return err
	}
	return write(c, writeJob{edit: edit, options: &o, reported: true})
}
