package remote

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Write implements endpoint.Target. A document whose compressed contents the
// server would compress to something else, or that are much larger than they
// look, goes by itself.
func (d *Database) Write(ctx context.Context, docs []*endpoint.Doc) ([]endpoint.Refused, error) {
	together := make([]*endpoint.Doc, 0, len(docs))
	var refused []endpoint.Refused
	for _, one := range docs {
		if !slices.ContainsFunc(one.Atts, d.apart) {
			together = append(together, one)
			continue
		}
		err := d.WriteWith(ctx, one, nil)
		switch {
		case err == nil:
		case endpoint.Retryable(err), ctx.Err() != nil:
			return nil, err
		default:
			refused = append(refused, endpoint.Refused{ID: one.ID, Rev: one.Path.Rev(), Err: err})
		}
	}
	if len(together) == 0 {
		return refused, nil
	}
	others, err := d.bulkDocs(ctx, together)
	return append(refused, others...), err
}

// apart reports whether a content cannot go as it was before compression: it
// would take too much memory, or the server would store other bytes than these.
func (d *Database) apart(a endpoint.Attachment) bool {
	if !a.Gzip || a.Data == nil {
		return false
	}
	content, err := inflate(a.Data)
	switch {
	case err != nil:
		return true
	case d.coding.Load() == codingIgnored:
		return false
	case !compressible(a.ContentType):
		return true
	}
	again, err := d.client.net.compress(content)
	return err != nil || !bytes.Equal(again, a.Data)
}

// compressible reports whether servers compress attachments of a type unless
// they are told otherwise.
func compressible(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	switch kind = strings.TrimSpace(kind); kind {
	case "application/javascript", "application/json", "application/xml":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}

// bulkDocs writes documents with one request.
func (d *Database) bulkDocs(ctx context.Context, docs []*endpoint.Doc) ([]endpoint.Refused, error) {
	size := 64
	for _, one := range docs {
		size += sizeHint(one)
	}
	body := append(make([]byte, 0, size), `{"new_edits":false,"docs":[`...)
	for i, one := range docs {
		if i > 0 {
			body = append(body, ',')
		}
		var err error
		if body, err = appendDoc(body, one, appendInline); err != nil {
			return nil, err
		}
	}
	hold := d.client.memory.Hold()
	defer hold.Release()
	text, a, err := d.client.read(ctx, &request{method: http.MethodPost, path: "_bulk_docs", body: append(body, "]}"...), hold: &hold})
	if err != nil {
		return nil, err
	}
	if text == nil && a.status != http.StatusExpectationFailed {
		err := d.client.refusal(a)
		if fault.Is(err, fault.MissingStub) {
			return d.writeStubs(ctx, docs, err)
		}
		return nil, err
	}
	if text == nil { // 417: a validation function of an old server refused some of them
		text, err = readAll(ctx, &hold, a.Body, maxAnswer+maxAnswerPerByte*len(body))
		if err = errors.Join(err, a.Body.Close()); err != nil {
			return nil, unread("the answer of "+d.client.url+"_bulk_docs", err)
		}
	}
	if a.status == http.StatusAccepted {
		// Fewer copies than a majority have them: they may be gone tomorrow.
		return nil, fault.Newf(fault.Unavailable, "%s has not enough copies", d.client.url)
	}
	return refusals(text, docs)
}

// writeStubs writes documents of which some have stubs that the server does not
// know: it has refused all of them and does not say which.
func (d *Database) writeStubs(ctx context.Context, docs []*endpoint.Doc, refusal error) ([]endpoint.Refused, error) {
	if len(docs) == 1 {
		return []endpoint.Refused{{ID: docs[0].ID, Rev: docs[0].Path.Rev(), Err: refusal}}, nil
	}
	half := len(docs) / 2
	first, err := d.bulkDocs(ctx, docs[:half])
	if err != nil {
		return nil, err
	}
	second, err := d.bulkDocs(ctx, docs[half:])
	return append(first, second...), err
}

// sizeHint is about how large a document is as JSON.
func sizeHint(d *endpoint.Doc) int {
	const head, perRev = 160, 36
	n := head + len(d.ID) + len(d.Body) + perRev*len(d.Path.IDs)
	for i := range d.Atts {
		n += head + len(d.Atts[i].Name) + base64.StdEncoding.EncodedLen(len(d.Atts[i].Data))
	}
	return n
}

// appendDoc appends a document with its history; content appends what is known
// of an attachment's content.
func appendDoc(dst []byte, d *endpoint.Doc, content func([]byte, *endpoint.Attachment) ([]byte, error)) ([]byte, error) {
	dst = doc.AppendHead(dst, doc.Splice{ID: d.ID, Rev: d.Path.Rev(), Deleted: d.Deleted, Body: d.Body})
	dst = append(dst, `,"_revisions":`...)
	dst = d.Path.AppendJSON(dst)
	for i := range d.Atts {
		if i == 0 {
			dst = append(dst, `,"_attachments":{`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendAttachment(dst, &d.Atts[i])
		var err error
		if dst, err = content(dst, &d.Atts[i]); err != nil {
			return dst, err
		}
		dst = append(dst, '}')
	}
	if len(d.Atts) > 0 {
		dst = append(dst, '}')
	}
	return append(dst, '}'), nil
}

// appendAttachment appends the name of an attachment and what is known of it,
// the digest where there is one.
func appendAttachment(dst []byte, a *endpoint.Attachment) []byte {
	if a.Digest != [16]byte{} {
		return a.AppendMember(dst)
	}
	dst = doc.AppendString(dst, a.Name)
	dst = append(dst, `:{"content_type":`...)
	dst = doc.AppendString(dst, a.ContentType)
	dst = append(dst, `,"revpos":`...)
	return strconv.AppendUint(dst, a.RevPos, 10)
}

// appendStub appends what stands for content that the target has.
func appendStub(dst []byte, a *endpoint.Attachment) []byte {
	dst = append(dst, `,"length":`...)
	dst = strconv.AppendInt(dst, a.Length, 10)
	return append(dst, `,"stub":true`...)
}

// appendInline appends the content in base64, which is always that before
// compression.
func appendInline(dst []byte, a *endpoint.Attachment) ([]byte, error) {
	if a.Stub {
		return appendStub(dst, a), nil
	}
	data := a.Data
	if a.Gzip {
		var err error
		if data, err = inflate(data); err != nil {
			return dst, fmt.Errorf("inflate attachment %q: %w", a.Name, err)
		}
	}
	dst = append(dst, `,"data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, '"'), nil
}

// maxInflated is how large a content may become, in bytes, that goes together
// with others.
const maxInflated = 1 << 20

// inflate returns the content of a gzip stream, of at most maxInflated bytes.
func inflate(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(z, maxInflated+1))
	if err == nil && len(content) > maxInflated {
		err = errors.New("it is a large content")
	}
	return content, err
}

// refusals reads which documents were not taken.
func refusals(text []byte, docs []*endpoint.Doc) ([]endpoint.Refused, error) {
	var out []endpoint.Refused
	err := doc.EachElement(text, func(value []byte) error {
		var r endpoint.Refused
		var name, reason, rev string
		err := doc.EachMember(value, func(member string, v []byte) error {
			switch member {
			case "id":
				r.ID, _ = doc.Unquote(v)
			case "rev":
				rev, _ = doc.Unquote(v)
			case "error":
				name = textOf(v)
			case "reason":
				reason = textOf(v)
			}
			return nil
		})
		if err != nil || name == "" {
			return err // one without an error is taken
		}
		if r.Rev, err = doc.ParseRev(rev); err != nil {
			r.Rev = onlyRev(docs, r.ID)
		}
		if len(out) == len(docs) {
			return errors.New("it refuses more documents than were sent")
		}
		r.Err = &fault.Error{Kind: kindOfDoc(name), Code: shortened(name), Reason: shortened(reason)}
		out = append(out, r)
		return nil
	})
	if err != nil {
		return nil, unread("the answer of _bulk_docs", err)
	}
	return out, nil
}

// onlyRev is the revision of the document of that id: an old server does not
// name it.
func onlyRev(docs []*endpoint.Doc, id string) doc.Rev {
	for _, d := range docs {
		if d.ID == id {
			return d.Path.Rev()
		}
	}
	return doc.Rev{}
}
