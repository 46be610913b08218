package repair

import (
	"context"
	"io"

	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

const (
	// inlineAttachment is the most stored bytes of an attachment that travel
	// inside an edit, as far as there is space for it; more is streamed.
	inlineAttachment = 64 << 10
	// blockBytes is how much of a streamed attachment is in memory.
	blockBytes = 64 << 10
)

// attachment makes the part of an edit for one attachment: the content itself
// when it is small and the parcel has space for it, else the key under which the
// target has it, where it is brought if need be. A content has the same key in
// all copies: what another revision of the target has, or an interrupted Copier
// has left, is found by that and not brought again. Of a small one that is looked for
// only if its document is large.
func (c *Copier) attachment(ctx context.Context, id string, a doc.Attachment, large bool) (shard.EditAttachment, error) {
	e := shard.EditAttachment{Attachment: a, HasRevPos: true}
	if a.StoredLength == 0 {
		e.Data = []byte{}
		return e, nil
	}
	if large || a.StoredLength > inlineAttachment {
		if there, err := c.hasContent(ctx, id, a); there || err != nil {
			return e, err
		}
	}
	r, err := replica.ReadAttachment.On(ctx, c.source.Copy, shard.AttachmentRange{Copy: c.source.Name, ID: id, Key: a.Key, Length: -1})
	if err != nil {
		return e, err
	}
	defer func() { _ = r.Close() }() // read only: nothing to lose
	if a.StoredLength <= min(inlineAttachment, max(0, int64(parcelBytes-c.out.bytes))) {
		e.Data = make([]byte, a.StoredLength)
		_, err = io.ReadFull(r, e.Data)
		c.out.bytes += len(e.Data)
		return e, err
	}
	return e, c.stream(ctx, id, a, r)
}

// hasContent reports whether the target has a content.
func (c *Copier) hasContent(ctx context.Context, id string, a doc.Attachment) (bool, error) {
	r, err := replica.ReadAttachment.On(ctx, c.target.Copy, shard.AttachmentRange{Copy: c.target.Name, ID: id, Key: a.Key})
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, r.Close()
}

// stream brings a content to the target, one block at a time.
func (c *Copier) stream(ctx context.Context, id string, a doc.Attachment, r io.Reader) error {
	sink, err := replica.PutAttachment.On(ctx, c.target.Copy, replica.PutAttachmentRequest{Copy: c.target.Name, ID: id, Key: a.Key})
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(meteredWriter{ctx, c, sink}, r, make([]byte, blockBytes))
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

// meteredWriter writes blocks when the bandwidth allows it.
type meteredWriter struct {
	ctx context.Context
	c   *Copier
	w   io.Writer
}

// Write implements io.Writer.
func (m meteredWriter) Write(b []byte) (int, error) {
	if err := m.c.wait(m.ctx, len(b)); err != nil {
		return 0, err
	}
	n, err := m.w.Write(b)
	m.c.progress.bytes.Add(uint64(n))
	m.c.progress.touch()
	return n, err
}
