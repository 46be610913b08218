package remote

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
)

// attachments are those of a document that was read: as stubs where one of the
// revisions that the target has came after them.
func attachments(e *doc.Envelope, path doc.Path, since []doc.Rev) ([]endpoint.Attachment, error) {
	known := uint64(0)
	for _, rev := range since {
		back := path.Start - rev.Pos
		if rev.Pos <= path.Start && back < uint64(len(path.IDs)) && path.IDs[back] == rev.ID {
			known = max(known, rev.Pos)
		}
	}
	atts := make([]endpoint.Attachment, len(e.Atts))
	for i := range e.Atts {
		s, a := &e.Atts[i], &atts[i]
		a.Attachment = doc.Attachment{
			Name: s.Name, ContentType: s.ContentType, RevPos: s.RevPos, Length: s.Length, StoredLength: s.Length,
			Gzip: s.Encoding == "gzip",
		}
		if !s.HasRevPos {
			a.RevPos = path.Start
		}
		if a.Gzip {
			a.StoredLength = s.EncodedLength
		}
		if text, ok := strings.CutPrefix(s.Digest, "md5-"); ok {
			if sum, err := base64.StdEncoding.DecodeString(text); err == nil && len(sum) == len(a.Digest) {
				a.Digest = [16]byte(sum)
			}
		}
		a.Stub = s.Stub && known > 0 && a.RevPos <= known
		if s.HasData {
			var err error
			if a.Data, err = s.AppendData([]byte{}); err != nil {
				return nil, broken(err)
			}
			a.Gzip, a.Length, a.StoredLength, a.Digest = false, int64(len(a.Data)), int64(len(a.Data)), md5.Sum(a.Data)
		} else if !a.Stub && a.StoredLength < 0 {
			return nil, fault.Newf(fault.Unavailable, "attachment %q of %q has no length", a.Name, e.ID)
		}
	}
	return atts, nil
}

// contents are those of a document, in the order of its attachments.
type contents struct {
	doc  *endpoint.Doc
	open func(context.Context, *endpoint.Attachment) (io.ReadCloser, error)
	at   int
	err  error // of the source, which a taker may only hand on
}

// Next implements endpoint.Contents.
func (c *contents) Next(ctx context.Context) (io.ReadCloser, error) {
	for c.at < len(c.doc.Atts) && !c.doc.Atts[c.at].Follows() {
		c.at++
	}
	if c.at == len(c.doc.Atts) {
		return nil, io.EOF
	}
	a := &c.doc.Atts[c.at]
	c.at++
	r, err := c.open(ctx, a)
	if err != nil {
		c.err = broken(err)
		return nil, c.err
	}
	return &content{from: r, owner: c, att: a, left: a.StoredLength, sum: md5.New()}, nil
}

// content is that of one attachment on its way. It ends with an error unless it
// is what the document said of it.
type content struct {
	from  io.ReadCloser
	owner *contents
	att   *endpoint.Attachment
	left  int64
	sum   hash.Hash
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	_, _ = c.sum.Write(p[:n]) // never fails
	c.left -= int64(n)
	if err == nil && c.left >= 0 {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		if err = c.check(); err == nil {
			return n, io.EOF
		}
	}
	c.owner.err = broken(err)
	return n, c.owner.err
}

// check compares what came with what was announced.
func (c *content) check() error {
	if c.left != 0 {
		return fmt.Errorf("attachment %q has %d bytes more or fewer than announced", c.att.Name, c.left)
	}
	if c.att.Digest != [16]byte{} && [16]byte(c.sum.Sum(nil)) != c.att.Digest {
		return fmt.Errorf("attachment %q does not have the digest it was announced with", c.att.Name)
	}
	return nil
}

// Close implements io.Closer.
func (c *content) Close() error { return c.from.Close() }
