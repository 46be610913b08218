package repair

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	// inlineAttachment is the most stored bytes of an attachment that travel
	// inside an edit, as far as there is room for it; more is streamed.
	inlineAttachment = 64 << 10
	// chunk is how much of a streamed attachment is in memory.
	chunk = 64 << 10
)

// upload is a content that the target has got ahead of the edits that
// refer to it. Its key is made for this push: were it the source's, giving up
// a failed push might drop a content that is in use under that key.
type upload struct {
	id       string
	from, to [16]byte // its keys in the source and in the target
}

// attachmentsThere returns the attachments that the target holds already with
// an ancestor of a revision; nil when that makes no difference. Only leaves of
// the target count: one on the path of the new revision is the ancestor that a
// stub of it refers to.
func (p *push) attachmentsThere(ctx context.Context, d *shard.Doc, ancestors []doc.Rev) ([]doc.Attachment, error) {
	var total int64
	large := slices.ContainsFunc(d.Atts, func(a doc.Attachment) bool {
		total += a.StoredLength
		return a.StoredLength > inlineAttachment || total > parcelBytes
	})
	if !large {
		return nil, nil
	}
	for i, id := range d.Revisions.IDs {
		r := doc.Rev{Pos: d.Revisions.Start - uint64(i), ID: id}
		if i == 0 || !slices.Contains(ancestors, r) {
			continue
		}
		old, err := p.target.copies.Open(ctx, shard.OpenRequest{
			Copy: p.name, ID: d.ID, Rev: r, AllowDeleted: true, HeadOnly: true,
		})
		if fault.Is(err, fault.NotFound) && !isNoCopy(err) {
			return nil, nil // compacted, or purged
		}
		if err != nil {
			return nil, fmt.Errorf("attachments of %q at the target: %w", d.ID, err)
		}
		return old.Atts, nil
	}
	return nil, nil
}

// attachment makes the part of an edit for one attachment: a stub when the
// target has the content with an ancestor, the content itself when it is small
// and the parcel has room for it, else the key under which the target has just
// stored it.
func (p *push) attachment(ctx context.Context, id string, a doc.Attachment, there []doc.Attachment) (shard.EditAttachment, error) {
	e := shard.EditAttachment{Attachment: a, HasRevPos: true}
	for _, old := range there {
		same := old.Name == a.Name && old.RevPos == a.RevPos && old.Digest == a.Digest && old.StoredLength == a.StoredLength
		if same {
			e.Stub = true
			return e, nil
		}
	}
	e.Key = [16]byte{}
	if a.StoredLength <= min(inlineAttachment, max(0, int64(parcelBytes-p.out.bytes))) {
		data, err := p.read(ctx, id, a)
		e.Data = data
		p.out.bytes += len(data)
		return e, err
	}
	for _, u := range p.out.stored {
		if u.id == id && u.from == a.Key {
			e.Key = u.to
			return e, nil
		}
	}
	u := upload{id: id, from: a.Key}
	_, _ = rand.Read(u.to[:]) // never fails
	if err := p.stream(ctx, &u, a); err != nil {
		return e, fmt.Errorf("push attachment %q of %q: %w", a.Name, id, err)
	}
	p.out.stored = append(p.out.stored, u)
	e.Key = u.to
	return e, nil
}

// read returns a small content.
func (p *push) read(ctx context.Context, id string, a doc.Attachment) ([]byte, error) {
	data := make([]byte, a.StoredLength)
	if len(data) == 0 {
		return data, nil
	}
	r, err := p.local.ReadAttachment(ctx, shard.AttachmentRange{Copy: p.name, ID: id, Key: a.Key, Length: -1})
	if err == nil {
		_, err = io.ReadFull(r, data)
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("read attachment %q of %q: %w", a.Name, id, err)
	}
	return data, nil
}

// stream copies a content to the target, one chunk at a time.
func (p *push) stream(ctx context.Context, u *upload, a doc.Attachment) error {
	r, err := p.local.ReadAttachment(ctx, shard.AttachmentRange{Copy: p.name, ID: u.id, Key: u.from, Length: -1})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // read only: nothing to lose
	sink, err := p.target.copies.PutAttachment(ctx, p.name, u.id, u.to)
	if err != nil {
		return err
	}
	n, err := p.pour(ctx, sink, r)
	if err == nil && n != a.StoredLength {
		err = fault.New(fault.Corruption, "stored content is shorter or longer than it should be")
	}
	if err == nil {
		err = sink.Close()
	}
	if err != nil {
		sink.Abort()
	}
	return err
}

// pour copies at the pace of the node.
func (p *push) pour(ctx context.Context, w io.Writer, r io.Reader) (n int64, err error) {
	if p.out.chunk == nil {
		p.out.chunk = make([]byte, chunk)
	}
	for {
		k, err := io.ReadFull(r, p.out.chunk)
		if k > 0 {
			if err := p.wait(ctx, k); err != nil {
				return n, err
			}
			if _, err := w.Write(p.out.chunk[:k]); err != nil {
				return n, err
			}
			n += int64(k)
			p.prog.sent(k)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// unstub makes the edits of the parcel again with all their contents.
func (p *push) unstub(ctx context.Context) error {
	for i := range p.out.edits {
		e := &p.out.edits[i]
		for k := range e.Atts {
			if !e.Atts[k].Stub {
				continue
			}
			var err error
			if e.Atts[k], err = p.attachment(ctx, e.ID, p.out.docs[i].Atts[k], nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// settleUploads drops the contents that no revision took: another push, or the
// coordinator, was faster with the revision.
func (p *push) settleUploads(ctx context.Context) error {
	if len(p.out.stored) == 0 {
		return nil
	}
	used := make(map[[16]byte]bool)
	for i := range p.out.edits {
		e := &p.out.edits[i]
		if !slices.ContainsFunc(p.out.stored, func(u upload) bool { return u.id == e.ID }) {
			continue
		}
		d, err := p.target.copies.Open(ctx, shard.OpenRequest{
			Copy: p.name, ID: e.ID, Rev: e.Path.Rev(), AllowDeleted: true, HeadOnly: true,
		})
		if fault.Is(err, fault.NotFound) && !isNoCopy(err) {
			continue
		}
		if err != nil {
			p.out.stored = nil // in doubt they stay
			return fmt.Errorf("look at %q at the target: %w", e.ID, err)
		}
		for _, a := range d.Atts {
			used[a.Key] = true
		}
	}
	p.out.stored = slices.DeleteFunc(p.out.stored, func(u upload) bool { return used[u.to] })
	p.out.abandon(ctx, p)
	return nil
}

// abandon drops the contents that no edit will refer to. It is worth a short
// time after the push was called off: the target would keep them until it is
// restarted.
func (o *parcel) abandon(ctx context.Context, p *push) {
	if len(o.stored) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	for _, u := range o.stored {
		_ = p.target.copies.DropAttachments(ctx, p.name, u.id, [][16]byte{u.to}) // they cost space, no more
	}
	o.stored = o.stored[:0]
}
