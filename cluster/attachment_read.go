package cluster

import (
	"context"
	"errors"
	"io"
	"time"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// ReadAttachment streams the stored bytes of an attachment of a document, n of
// them from off on; a negative n means to the end. The caller closes the
// reader. The bytes are compressed when a.Gzip. When a copy breaks off, the
// stream goes on from another one.
func (d *DB) ReadAttachment(ctx context.Context, id string, a doc.Attachment, off, n int64) (io.ReadCloser, error) {
	s := d.owner(id)
	r := shard.AttachmentRange{ID: id, Key: a.Key, Offset: off, Length: n}
	if s.near[0].Node == d.c.node {
		mine := r
		mine.Copy = s.near[0].Name
		content, err := replica.ReadAttachment.On(ctx, d.c.local, mine)
		if err == nil || len(s.near) == 1 {
			return content, d.explain(ctx, err) // a disk does not break off as nodes do
		}
	}
	c := &contentReader{db: d, ctx: ctx, att: a, want: r, copies: s.near}
	if err := c.open(); err != nil {
		return nil, d.explain(ctx, err)
	}
	return c, nil
}

// contentReader reads an attachment from one copy, and the rest from another
// one when that breaks off or falls silent.
type contentReader struct {
	db     *DB
	ctx    context.Context // of the request
	att    doc.Attachment
	want   shard.AttachmentRange // what has not been read
	copies []fanout.Target       // those that have not failed
	from   fanout.Target
	r      io.ReadCloser
	stop   context.CancelFunc
}

// open opens what has not been read on a copy.
func (c *contentReader) open() error {
	one, err := fanout.AnyCopy[io.ReadCloser]{
		Database: c.db.asking(), Copies: c.copies, Ask: c.openAt, Absent: len(c.copies),
		Drop:  func(r io.ReadCloser) { _ = r.Close() }, // read only: nothing to lose
		Limit: c.db.c.requestTimeout(),
	}.First(c.ctx)
	if err != nil {
		return err
	}
	c.r, c.from, c.stop = one.Got, one.From, one.Stop
	return nil
}

// openAt opens the content on one copy. The same content may have another key
// there, when the same revision came to the copies by different ways: then it
// is known by its digest.
func (c *contentReader) openAt(ctx context.Context, rep replica.Copies, t fanout.Target) (io.ReadCloser, error) {
	r := c.want
	r.Copy = t.Name
	content, err := replica.ReadAttachment.On(ctx, rep, r)
	if err == nil || !isNotFound(err) || c.att.StoredLength == 0 {
		return content, err
	}
	leaves, revsErr := replica.OpenRevs.On(ctx, rep, shard.OpenRevsRequest{Copy: t.Name, ID: r.ID, All: true, HeadOnly: true})
	if revsErr != nil {
		return nil, err
	}
	for _, leaf := range leaves {
		for i := range leaf.Doc.Atts {
			a := &leaf.Doc.Atts[i]
			if a.Digest == c.att.Digest && a.StoredLength == c.att.StoredLength && a.Key != c.att.Key {
				r.Key = a.Key
				return replica.ReadAttachment.On(ctx, rep, r)
			}
		}
	}
	return nil, err
}

// Read implements io.Reader.
func (c *contentReader) Read(p []byte) (int, error) {
	for {
		stall := time.AfterFunc(fanout.StallLimit, c.stop)
		n, err := c.r.Read(p)
		if !stall.Stop() && err != nil && !errors.Is(err, io.EOF) { // it has ended the context
			err = fault.Wrap(fault.Timeout, fanout.TimeoutText, err)
		}
		c.want.Offset += int64(n)
		if c.want.Length >= 0 {
			c.want.Length -= int64(n)
		}
		if err == nil || errors.Is(err, io.EOF) || c.ctx.Err() != nil {
			return n, err
		}
		if n > 0 {
			return n, nil // the rest comes with the next call, or its error
		}
		if nextErr := c.another(); nextErr != nil {
			return 0, c.db.explain(c.ctx, quorum.Telling(err, nextErr))
		}
	}
}

// another goes on with another copy.
func (c *contentReader) another() error {
	c.stop()
	_ = c.r.Close() // read only: nothing to lose
	left := make([]fanout.Target, 0, len(c.copies))
	for _, t := range c.copies {
		if t != c.from {
			left = append(left, t)
		}
	}
	c.copies = left
	if err := c.open(); err != nil {
		c.r = closedReader{err}
		return err
	}
	return nil
}

// Close implements io.Closer.
func (c *contentReader) Close() error {
	defer c.stop()
	return c.r.Close()
}

// closedReader is what is left when no copy goes on.
type closedReader struct{ err error }

// Read implements io.Reader.
func (r closedReader) Read([]byte) (int, error) { return 0, r.err }

// Close implements io.Closer.
func (closedReader) Close() error { return nil }

// Discard drops what Upload stored for an edit that was refused. It tells
// nothing: what cannot be dropped now goes with the next compaction.
func (d *DB) Discard(ctx context.Context, docID string, atts []shard.EditAttachment) {
	var keys [][16]byte
	for _, a := range atts {
		if !a.Stub && a.Data == nil {
			keys = append(keys, a.Key)
		}
	}
	if len(keys) == 0 {
		return
	}
	for _, t := range d.owner(docID).copies {
		rep := d.c.replica(t.Node)
		if rep == nil {
			continue
		}
		drop := func(ctx context.Context) {
			if _, err := replica.DropAttachments.On(ctx, rep, replica.DropAttachmentsRequest{Copy: t.Name, ID: docID, Keys: keys}); err != nil && !fault.Is(err, fault.NoCopy) {
				d.c.log.Warn("content of a refused edit stays until compaction",
					zap.String("copy", t.Name), zap.String("node", t.Node), zap.Error(err))
			}
		}
		if t.Node != d.c.node && d.c.detach(ctx, drop) {
			continue
		}
		// The refusal may be that the request has ended.
		own, cancel := d.c.deadline(context.WithoutCancel(ctx))
		drop(own)
		cancel()
	}
}
