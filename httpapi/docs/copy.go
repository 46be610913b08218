package docs

import (
	"fmt"
	"strings"

	"divan/httpapi/core"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// copyDocument serves COPY /{db}/{docid}: the body and the attachments of one
// revision become an edit of another document (api.md 9.4).
func copyDocument(c *core.Call) error {
	o, err := parseDocOptions(c.Query)
	if err != nil {
		return err
	}
	if err := checkPathID(c); err != nil {
		return err
	}
	source, err := requestRev(c, &o)
	if err != nil {
		return err
	}
	target, parent, err := parseDestination(c.Request.Header.Get("Destination"), c.Config.Chttpd.DecodePlusToSpace)
	if err != nil {
		return err
	}
	if err := c.Rights().CheckID(target); err != nil {
		return err
	}
	d, err := openAny(c, c.DocID, source)
	if err != nil {
		return err
	}
	edit := shard.Edit{ID: target, Parent: parent, Deleted: d.Deleted, Body: d.Body}
	if err := c.Rights().Prepare(c.Request.Context(), &edit); err != nil {
		return err
	}
	up := newUpload(c, target, false)
	if edit.Atts, err = up.copyAll(d, parent); err != nil {
		return err
	}
	o.replicated, o.batch, o.w = false, false, 0
	return write(c, writeJob{edit: edit, options: &o, upload: up, location: true, etag: true, created: true})
}

// parseDestination reads a Destination header: a document id, percent-encoded,
// with the revision it is to replace in its query.
func parseDestination(header string, plusIsSpace bool) (id string, rev doc.Rev, err error) {
	switch {
	case header == "":
		return "", doc.Rev{}, fault.New(fault.BadRequest, "Destination header is mandatory for COPY.")
	case strings.HasPrefix(header, "http://"), strings.HasPrefix(header, "https://"):
		return "", doc.Rev{}, fault.New(fault.BadRequest, "Destination URL must be relative.")
	}
	path, query, ok := strings.Cut(header, "?")
	if ok {
		_, text, _ := strings.Cut(query, "=")
		if rev, err = doc.ParseRev(text); err != nil {
			return "", doc.Rev{}, err
		}
	}
	id, err = core.Unescape(path, plusIsSpace)
	return id, rev, err
}

// copyAll makes the attachments of d those of an edit of u's document. They
// keep their revpos, as in CouchDB.
func (u *upload) copyAll(d *shard.Doc, parent doc.Rev) ([]shard.EditAttachment, error) {
	if len(d.Atts) == 0 || doc.IsLocal(u.id) {
		return nil, nil
	}
	atts := make([]shard.EditAttachment, len(d.Atts))
	for i := range d.Atts {
		if u.id == d.ID && parent.Compare(d.Rev) == 0 {
			atts[i] = stubOf(&d.Atts[i])
			continue
		}
		a, err := u.copyOne(d.ID, &d.Atts[i])
		if err != nil {
			u.discard()
			return nil, err
		}
		atts[i] = a
	}
	return atts, nil
}

// stubOf keeps an attachment of the revision that is replaced.
func stubOf(a *doc.Attachment) shard.EditAttachment {
	return shard.EditAttachment{Attachment: *a, Stub: true, HasRevPos: true}
}

// copyOne stores the bytes of another document's attachment once more, as they
// are: the content of a document lives with that document.
func (u *upload) copyOne(id string, a *doc.Attachment) (out shard.EditAttachment, err error) {
	r, err := u.c.DB.ReadAttachment(u.c.Request.Context(), id, *a, 0, a.StoredLength)
	if err != nil {
		return shard.EditAttachment{}, fmt.Errorf("copy attachment %q of %q: %w", a.Name, id, err)
	}
	defer func() {
		if closeErr := r.Close(); err == nil {
			err = closeErr
		}
	}()
	out, err = u.store(content{
		name: a.Name, contentType: a.ContentType, gzip: a.Gzip, length: a.StoredLength, identity: -1, r: r,
	})
	if err != nil {
		return shard.EditAttachment{}, err
	}
	out.Length, out.RevPos, out.HasRevPos = a.Length, a.RevPos, true
	return out, nil
}
