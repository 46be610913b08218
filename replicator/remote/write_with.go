package remote

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"divan/cluster/docformat"
	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Whether a server takes attachments that are compressed already. PouchDB
// Server keeps them as if they were not.
const (
	codingUnknown int32 = iota
	codingTaken
	codingIgnored
)

// WriteWith implements endpoint.Target: PUT of multipart/related. Content that is
// with the document but cannot stand in it is a part as well.
func (d *Database) WriteWith(ctx context.Context, one *endpoint.Doc, contents endpoint.Contents) error {
	inflate, err := d.inflates(ctx, one)
	if err != nil {
		return err
	}
	m := docformat.Related{Boundary: docformat.Boundary(), ID: one.ID}
	source := &contentReader{contents: contents}
	m.JSON, err = appendDoc(nil, one, func(dst []byte, a *endpoint.Attachment) ([]byte, error) {
		if !a.Follows() && !d.apart(*a) {
			return appendInline(dst, a)
		}
		m.Atts = append(m.Atts, a.Attachment)
		source.parts = append(source.parts, part{held: a.Data, inflate: a.Gzip && inflate})
		return appendFollows(dst, &m.Atts[len(m.Atts)-1], inflate), nil
	})
	if err != nil {
		return err
	}
	pr, pw := io.Pipe()
	var sender sync.WaitGroup
	sender.Go(func() { pw.CloseWithError(m.Write(ctx, pw, source)) })
	text, a, err := d.client.read(ctx, &request{
		method: http.MethodPut, path: docPath(one.ID), query: "new_edits=false",
		stream: pr, streamType: m.ContentType(), size: m.Size(),
	})
	_ = pr.CloseWithError(errors.New("the server has answered already")) // never fails
	sender.Wait()
	switch {
	case source.err != nil && (err != nil || text == nil):
		if a != nil {
			_ = a.Body.Close() // it answers half a document
		}
		return source.err
	case err != nil:
		return err
	case text == nil:
		return d.judge(ctx, d.client.refusal(a))
	case a.status == http.StatusAccepted:
		return fault.Newf(fault.Unavailable, "%s has not enough copies", d.client.url)
	}
	if text = bytes.TrimSpace(text); !doc.IsObject(text) && !doc.IsArray(text) { // PouchDB Server answers []
		return fault.Newf(fault.Unavailable, "%s answers %d, but not as a database does: %.40q", d.client.url, a.status, text)
	}
	return nil
}

// judge tells the refusal of a document by a validation function from that of
// the account: the document is not to blame for the latter.
func (d *Database) judge(ctx context.Context, refusal error) error {
	if !fault.Is(refusal, fault.Unauthorized) && !fault.Is(refusal, fault.Forbidden) {
		return refusal
	}
	if _, err := d.Info(ctx); err != nil {
		return fault.Wrap(fault.Unavailable, "write to "+d.client.url, errors.Join(refusal, err))
	}
	return refusal
}

// appendFollows appends what announces a part. a becomes what is sent.
func appendFollows(dst []byte, a *doc.Attachment, inflate bool) []byte {
	if a.Gzip && inflate {
		a.Gzip, a.StoredLength = false, -1 // Length came from a client
	}
	dst = append(dst, `,"length":`...)
	dst = strconv.AppendInt(dst, a.Length, 10)
	dst = append(dst, `,"follows":true`...)
	if a.Gzip {
		dst = append(dst, `,"encoding":"gzip","encoded_length":`...)
		dst = strconv.AppendInt(dst, a.StoredLength, 10)
	}
	return dst
}

// contentReader gives the parts their contents, which come in the order of the
// attachments.
type contentReader struct {
	contents endpoint.Contents
	parts    []part // to come
	err      error  // of the contents
}

// part is a content to come.
type part struct {
	held    []byte // nil: it is the next one of the contents
	inflate bool
}

// ReadAttachment implements docformat.ContentReader.
func (c *contentReader) ReadAttachment(ctx context.Context, _ string, _ doc.Attachment, _, _ int64) (io.ReadCloser, error) {
	next := c.parts[0]
	c.parts = c.parts[1:]
	r := io.NopCloser(bytes.NewReader(next.held))
	if next.held == nil {
		var err error
		if r, err = c.contents.Next(ctx); err != nil {
			c.err = err
			return nil, err
		}
	}
	body := &contentBody{ReadCloser: r, from: r, owner: c}
	if next.inflate {
		z, err := gzip.NewReader(r)
		if err != nil {
			c.err = errors.Join(fmt.Errorf("inflate: %w", err), r.Close())
			return nil, c.err
		}
		body.from = z
	}
	return body, nil
}

// contentBody notes the error of a content, which is not one of the target.
type contentBody struct {
	io.ReadCloser
	from  io.Reader
	owner *contentReader
}

// Read implements io.Reader.
func (b *contentBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.owner.err = err
	}
	return n, err
}

// inflates reports whether compressed contents of a document have to be sent
// as they were before.
func (d *Database) inflates(ctx context.Context, one *endpoint.Doc) (bool, error) {
	zipped := false
	for i := range one.Atts {
		zipped = zipped || one.Atts[i].Gzip && !one.Atts[i].Stub
	}
	if !zipped {
		return false, nil
	}
	if d.coding.Load() == codingUnknown {
		text, a, err := d.client.read(ctx, &request{method: http.MethodGet, path: rootPath})
		if err != nil {
			return false, err
		}
		coding := codingTaken
		if text == nil {
			_ = a.Body.Close() // it tells nothing about itself
		} else if doc.Lookup(text, "express-pouchdb") != nil {
			coding = codingIgnored
		}
		d.coding.Store(coding)
	}
	return d.coding.Load() == codingIgnored, nil
}
