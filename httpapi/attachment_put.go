package httpapi

import (
	"strings"

	"divan/cluster"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// putAttachment serves PUT /{db}/{docid}/{name}: the content streams into the
// database, then one edit adds it to the document (api.md 10.2).
func putAttachment(c *call) error {
	o, err := c.attachmentOptions()
	if err != nil {
		return err
	}
	name := c.attachmentName()
	if err := doc.ValidateAttachmentName(name); err != nil {
		return err
	}
	rev, err := c.requestRev(&o)
	if err != nil {
		return err
	}
	edit := shard.Edit{ID: c.docID, Parent: rev, Body: emptyBody()}
	if !rev.IsZero() {
		d, err := c.parentOfAttachment(rev)
		if err != nil {
			return err
		}
		edit.Body, edit.Atts = d.Body, otherAttachments(d, name)
	}
	if err := c.guardEdit(&edit); err != nil {
		return err
	}
	up := c.newUpload(c.docID, false)
	in := content{name: name, contentType: c.r.Header.Get("Content-Type"), length: c.r.ContentLength, identity: -1}
	switch strings.ToLower(strings.TrimSpace(c.r.Header.Get("Content-Encoding"))) {
	case "", "identity":
	case "gzip":
		in.gzip = true
	default:
		return fault.New(fault.BadContentType, "Only gzip and identity content-encodings are supported")
	}
	in.r = c.uploadBody()
	a, err := up.store(in)
	if err != nil {
		return err
	}
	edit.Atts = append([]shard.EditAttachment{a}, edit.Atts...)
	return c.write(writeJob{edit: edit, options: &o, upload: up, location: true, part: name})
}

// attachmentOptions checks the document of the path and reads the options of
// an attachment write.
func (c *call) attachmentOptions() (docOptions, error) {
	if err := c.refuseLocalAttachment(); err != nil {
		return docOptions{}, err
	}
	if err := c.checkID(c.docID); err != nil {
		return docOptions{}, err
	}
	o, err := parseDocOptions(c.query)
	o.batch, o.replicated = false, false
	return o, err
}

// parentOfAttachment opens the revision that an attachment write names.
func (c *call) parentOfAttachment(rev doc.Rev) (*shard.Doc, error) {
	d, err := c.open(cluster.OpenOptions{ID: c.docID, Rev: rev})
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
func deleteAttachment(c *call) error {
	o, err := c.attachmentOptions()
	if err != nil {
		return err
	}
	rev, err := c.requestRev(&o)
	if err != nil {
		return err
	}
	var d *shard.Doc
	if rev.IsZero() {
		d, err = c.open(cluster.OpenOptions{ID: c.docID})
	} else {
		d, err = c.parentOfAttachment(rev)
	}
	if err != nil {
		return err
	}
	name := c.attachmentName()
	if findAttachment(d, name) == nil {
		return errNoAttachment()
	}
	edit := shard.Edit{ID: c.docID, Parent: rev, Body: d.Body, Atts: otherAttachments(d, name)}
	if err := c.guardEdit(&edit); err != nil {
		return err
	}
	return c.write(writeJob{edit: edit, options: &o, reported: true})
}
