package remote

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"divan/cluster/zlib"
	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
)

// smallContents is how large the contents of a document are at most that go
// with others in one request, in bytes.
const smallContents = 64 << 10

// isSmall reports whether the contents of a document that follow are small.
func isSmall(one *endpoint.Doc) bool {
	size := int64(0)
	for i := range one.Atts {
		if a := &one.Atts[i]; a.Follows() {
			if a.StoredLength < 0 || a.StoredLength > smallContents {
				return false // before it is added: a peer may say any number
			}
			size += a.StoredLength
		}
	}
	return size <= smallContents
}

// inlines reports whether the contents of a document can come in its JSON.
func (d *Database) inlines(one *endpoint.Doc) bool {
	zipped := slices.ContainsFunc(one.Atts, func(a endpoint.Attachment) bool { return a.Gzip && a.Follows() })
	return isSmall(one) && (!zipped || !d.otherZip.Load())
}

// attachments are those of a document that was read: as stubs where one of the
// revisions that the target has came after them.
func (d *Database) attachments(e *doc.Envelope, path doc.Path, since []doc.Rev) ([]endpoint.Attachment, error) {
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
		a.Attachment = announced(s)
		if !s.HasRevPos {
			a.RevPos = path.Start
		}
		a.Stub = !s.Follows && known > 0 && a.RevPos <= known
		switch {
		case a.Stub:
		case s.HasData:
			if err := d.takeData(a, s); err != nil {
				return nil, err
			}
		case a.StoredLength < 0:
			return nil, fault.Newf(fault.Unavailable, "attachment %q of %q has no length", a.Name, e.ID)
		}
	}
	return atts, nil
}

// announced returns an attachment as the document describes it.
func announced(s *doc.AttachmentSpec) doc.Attachment {
	a := doc.Attachment{
		Name: s.Name, ContentType: s.ContentType, RevPos: s.RevPos, Length: s.Length, StoredLength: s.Length,
		Gzip: s.Encoding == "gzip",
	}
	if a.Gzip {
		a.StoredLength = s.EncodedLength
	}
	if text, ok := strings.CutPrefix(s.Digest, "md5-"); ok {
		if sum, err := base64.StdEncoding.DecodeString(text); err == nil && len(sum) == len(a.Digest) {
			a.Digest = [16]byte(sum)
		}
	}
	return a
}

// takeData takes a content that stands in the document, where it is always what
// it was before compression. Of one that the source keeps compressed, the
// content follows unless the compression can be made again exactly.
func (d *Database) takeData(a *endpoint.Attachment, s *doc.AttachmentSpec) error {
	data, err := s.AppendData([]byte{})
	if err != nil {
		return broken(err)
	}
	a.Length = int64(len(data))
	if a.Gzip {
		if data, err = d.client.net.compress(data); err != nil {
			return err
		}
	}
	sum := md5.Sum(data)
	if a.Gzip && sum != a.Digest {
		d.otherZip.Store(true)
		if a.StoredLength < 0 {
			return broken(fmt.Errorf("attachment %q has no length", a.Name))
		}
		return nil
	}
	a.Data, a.Digest, a.StoredLength = data, sum, int64(len(data))
	return nil
}

// zipLevel is the level at which servers compress unless they are told
// otherwise.
const zipLevel = 8

// compress compresses as servers do.
func (n *Network) compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	z, ok := n.zips.Get().(*zlib.Writer)
	if ok {
		z.Reset(&out)
	} else {
		var err error
		if z, err = zlib.NewWriter(&out, zipLevel); err != nil {
			return nil, fmt.Errorf("compress attachment: %w", err)
		}
	}
	_, err := z.Write(data)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, fmt.Errorf("compress attachment: %w", err)
	}
	n.zips.Put(z)
	return out.Bytes(), nil
}

// contents are those of a document, in the order of its attachments.
type contents struct {
	doc  *endpoint.Doc
	open func(*endpoint.Attachment) (io.ReadCloser, error)
	at   int
	err  error // of the source, which a taker may only hand on
}

// Next implements endpoint.Contents. The context is that of Fetch.
func (c *contents) Next(context.Context) (io.ReadCloser, error) { return c.next() }

func (c *contents) next() (io.ReadCloser, error) {
	for c.at < len(c.doc.Atts) && !c.doc.Atts[c.at].Follows() {
		c.at++
	}
	if c.at == len(c.doc.Atts) {
		return nil, io.EOF
	}
	a := &c.doc.Atts[c.at]
	c.at++
	r, err := c.open(a)
	if err != nil {
		c.err = broken(err)
		return nil, c.err
	}
	return &content{from: r, owner: c, att: a, left: a.StoredLength, sum: md5.New()}, nil
}

// load reads all contents into the document.
func (c *contents) load() error {
	for i := range c.doc.Atts {
		a := &c.doc.Atts[i]
		if !a.Follows() {
			continue
		}
		r, err := c.next()
		if err != nil {
			return err
		}
		data, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		a.Data = data
	}
	return nil
}

// content is that of one attachment on its way. It ends with an error unless it is as the document
// described it.
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
