package local

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"divan/cluster"
	"divan/cluster/attachment"
	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	// smallContent is up to how many bytes content travels with its document,
	smallContent = attachment.MaxInline
	// mostCarried how many that are in all: a document may have any number of small ones.
	mostCarried = 1 << 20
)

// readContent reads the content of a small attachment.
func readContent(ctx context.Context, db *cluster.DB, id string, a *doc.Attachment) ([]byte, error) {
	r, err := db.ReadAttachment(ctx, id, *a, 0, a.StoredLength)
	if err != nil {
		return nil, fmt.Errorf("read attachment %q of %q: %w", a.Name, id, err)
	}
	defer func() { _ = r.Close() }() // read only: nothing to lose
	data := make([]byte, a.StoredLength)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("read attachment %q of %q: %w", a.Name, id, err)
	}
	return data, nil
}

// contents implements endpoint.Contents: each content is opened when it is asked
// for.
type contents struct {
	db   *cluster.DB
	doc  *endpoint.Doc
	next int // in doc.Atts
	open io.ReadCloser
}

// Next implements endpoint.Contents.
func (c *contents) Next(ctx context.Context) (io.ReadCloser, error) {
	c.close()
	for ; c.next < len(c.doc.Atts); c.next++ {
		a := &c.doc.Atts[c.next]
		if !a.Follows() {
			continue
		}
		c.next++
		r, err := c.db.ReadAttachment(ctx, c.doc.ID, a.Attachment, 0, a.StoredLength)
		if err != nil {
			return nil, fmt.Errorf("read attachment %q of %q: %w", a.Name, c.doc.ID, err)
		}
		c.open = r
		return r, nil
	}
	return nil, io.EOF
}

func (c *contents) close() {
	if c.open != nil {
		_ = c.open.Close() // read only: nothing to lose
		c.open = nil
	}
}

// attachments stores the content of the attachments of a revision, as far as it
// is there, for an edit.
func (w *writing) attachments(ctx context.Context, d *endpoint.Doc, contents endpoint.Contents) ([]shard.EditAttachment, error) {
	atts := make([]shard.EditAttachment, 0, len(d.Atts))
	for i := range d.Atts {
		a := &d.Atts[i]
		if a.Stub {
			atts = append(atts, shard.EditAttachment{Attachment: a.Attachment, Stub: true, HasRevPos: true})
			continue
		}
		stored, err := w.store(ctx, d.ID, a, contents)
		if err != nil {
			w.db.Discard(ctx, d.ID, atts)
			return nil, err
		}
		atts = append(atts, stored)
	}
	return atts, nil
}

// store stores the content of one attachment.
func (w *writing) store(ctx context.Context, id string, a *endpoint.Attachment, contents endpoint.Contents) (shard.EditAttachment, error) {
	var r io.Reader = bytes.NewReader(a.Data)
	if a.Follows() {
		content, err := contents.Next(ctx)
		if err != nil {
			return shard.EditAttachment{}, err
		}
		defer func() { _ = content.Close() }() // read only: nothing to lose
		r = content
	}
	o := attachment.Options{Name: a.Name, ContentType: a.ContentType, Length: a.StoredLength, Identity: -1}
	if a.Data != nil {
		o.Length = int64(len(a.Data))
	}
	if a.Gzip {
		o.Encoding, o.Identity = "gzip", a.Length
	}
	stored, err := w.db.Upload(ctx, id, o, r)
	if err != nil {
		return shard.EditAttachment{}, err
	}
	if a.Digest != [16]byte{} && stored.Gzip == a.Gzip && stored.Digest != a.Digest {
		w.db.Discard(ctx, id, []shard.EditAttachment{stored})
		return shard.EditAttachment{}, fault.Newf(fault.BadRequest, "Possible message corruption of attachment `%s`.", a.Name)
	}
	stored.RevPos, stored.HasRevPos = a.RevPos, true
	return stored, nil
}

// discard gives back the content of edits that are not written.
func (w *writing) discard(ctx context.Context, edits []shard.Edit) {
	for i := range edits {
		w.db.Discard(ctx, edits[i].ID, edits[i].Atts)
	}
}

// settle gives back the content of edits that err says were refused.
func (w *writing) settle(ctx context.Context, edits []shard.Edit, err error) {
	if cluster.Refusal(err) {
		w.discard(ctx, edits)
	}
}
