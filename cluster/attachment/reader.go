package attachment

import (
	"context"
	"errors"
	"io"
	"time"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Reader reads an attachment from one copy, and the rest from another
// one when that breaks off or falls silent.
type Reader struct {
	db     Database
	ctx    context.Context // of the request
	att    doc.Attachment
	want   shard.AttachmentRange // what has not been read
	copies []ring.Replica        // those that have not failed
	from   ring.Replica
	r      io.ReadCloser
	limit  time.Duration // until a copy has begun; 0: none
	stop   context.CancelFunc
}

// Open opens the content of an attachment on one of the copies; limit is how
// long all of them may take to begin, 0 for as long as they like.
func Open(ctx context.Context, db Database, att doc.Attachment, want shard.AttachmentRange, from From) (*Reader, error) {
	c := &Reader{db: db, ctx: ctx, att: att, want: want, copies: from.Copies, limit: from.Limit}
	if err := c.open(); err != nil {
		return nil, db.Explain(ctx, err)
	}
	return c, nil
}

// From is where content is read.
type From struct {
	Copies []ring.Replica // in the order in which they are asked
	Limit  time.Duration  // for one of them to begin; 0: none
}

// open opens what has not been read on a copy.
func (c *Reader) open() error {
	one, err := fanout.AnyCopy[io.ReadCloser]{
		Database: c.db, Copies: c.copies, Ask: c.openAt, Absent: len(c.copies),
		Drop:  func(r io.ReadCloser) { _ = r.Close() }, // read only: nothing to lose
		Limit: c.limit,
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
func (c *Reader) openAt(ctx context.Context, rep replica.Copy, t ring.Replica) (io.ReadCloser, error) {
	r := c.want
	r.Copy = t.Name
	content, err := replica.ReadAttachment.On(ctx, rep, r)
	if err == nil || !fault.Is(err, fault.NotFound) || c.att.StoredLength == 0 {
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
func (c *Reader) Read(p []byte) (int, error) {
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
			return 0, c.db.Explain(c.ctx, quorum.Telling(err, nextErr))
		}
	}
}

// another goes on with another copy.
func (c *Reader) another() error {
	c.stop()
	_ = c.r.Close() // read only: nothing to lose
	left := make([]ring.Replica, 0, len(c.copies))
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
func (c *Reader) Close() error {
	defer c.stop()
	return c.r.Close()
}

// closedReader is the reader that is left when no copy goes on.
type closedReader struct{ err error }

// Read implements io.Reader.
func (r closedReader) Read([]byte) (int, error) { return 0, r.err }

// Close implements io.Closer.
func (closedReader) Close() error { return nil }
