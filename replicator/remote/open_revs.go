package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"divan/cluster/docformat"
	"divan/replicator/endpoint"
	"divan/storage/doc"
)

// openRevs is the query string that asks for as many of the revisions as fit
// into an address, and how many those are. Ancestors that do not fit are left
// out, the oldest first: more contents come than would have to.
func (f *fetch) openRevs(w *endpoint.Wanted, revs []doc.Rev) (query string, asked int) {
	room := maxURL - len(f.db.url) - len(docPath(w.ID)) - 100
	var since []doc.Rev
	if !f.whole {
		since = slices.Clone(w.Ancestors)
		slices.SortFunc(since, func(a, b doc.Rev) int { return b.Compare(a) })
	}
	known, _ := revsParam(since, room/2, 0)
	list, asked := revsParam(revs, room-len(known), 1)
	return "revs=true&latest=true&att_encoding_info=true&open_revs=" + list + "&atts_since=" + known, asked
}

// revsParam is a list of revisions as a parameter, of those that fit into room
// but of least at any rate.
func revsParam(revs []doc.Rev, room, least int) (string, int) {
	text := "["
	for i, rev := range revs {
		one := string(rev.AppendJSON(nil))
		if i > 0 {
			one = "," + one
		}
		if one = url.QueryEscape(one); i >= least && len(text)+len(one) > room {
			return text + "]", i
		}
		text += one
	}
	return text + "]", len(revs)
}

// parts takes the documents of multipart/mixed. It returns those whose contents
// should have come with them, but have not.
func (f *fetch) parts(parts *docformat.Parts, w *endpoint.Wanted) (bare []*endpoint.Doc, err error) {
	for held := 0; ; {
		part, err := parts.Next()
		if errors.Is(err, io.EOF) {
			return bare, nil
		}
		if err != nil {
			return nil, broken(err)
		}
		contentType := part.Header.Get("Content-Type")
		if name, _, err := mime.ParseMediaType(contentType); err == nil && name == "multipart/related" {
			if err := f.related(part, contentType, w); err != nil {
				return nil, err
			}
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, maxValue))
		if err != nil {
			return nil, broken(err)
		}
		d, err := f.plain(text, w)
		if err != nil {
			return nil, err
		}
		if d != nil {
			if held += len(text); held > maxRevisions {
				return nil, broken(errTooLarge)
			}
			bare = append(bare, d)
		}
	}
}

// maxRevisions is how much the revisions of one document have, without contents
// that follow, that are held at once, in bytes.
const maxRevisions = 256 << 20

// errTooLarge refuses an answer that has more documents than memory may hold.
var errTooLarge = fmt.Errorf("the revisions of one document are more than %d bytes", maxRevisions)

// plain takes a part that is JSON: a document without contents, or what stands
// for one that is not there. One that has contents is returned.
func (f *fetch) plain(text []byte, w *endpoint.Wanted) (*endpoint.Doc, error) {
	if doc.Lookup(text, "_id") == nil {
		return nil, nil
	}
	d, err := f.parse(text, w)
	if err != nil || d == nil || d.Follows() {
		return d, err
	}
	return nil, f.give(d, nil)
}

// related takes a document with its contents.
func (f *fetch) related(part io.Reader, contentType string, w *endpoint.Wanted) error {
	r, text, err := docformat.NewRelatedReader(part, contentType, docformat.UpTo(maxValue))
	if err != nil {
		return broken(err)
	}
	d, err := f.parse(text, w)
	if err != nil || d == nil {
		return err
	}
	c := &contents{doc: d, open: func(*endpoint.Attachment) (io.ReadCloser, error) {
		next, err := r.Next(new(doc.AttachmentSpec))
		return io.NopCloser(next), err
	}}
	return f.give(d, c)
}

// array reads the documents of a server that answers JSON. None holds content.
func (f *fetch) array(body io.Reader, w *endpoint.Wanted) ([]*endpoint.Doc, error) {
	l := list{stream: newStream(body)}
	var docs []*endpoint.Doc
	for held := 0; ; {
		text, err := l.next()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, broken(err)
		}
		var one []byte
		scanMembers(text, func(name, value []byte) {
			if string(name) == "ok" {
				one = value
			}
		})
		if one == nil {
			continue
		}
		d, err := f.parse(one, w)
		if err != nil {
			return nil, err
		}
		if d != nil {
			if held += len(text); held > maxRevisions {
				return nil, broken(errTooLarge)
			}
			docs = append(docs, d)
		}
	}
}

// separately gives contents that are asked for one by one.
func (f *fetch) separately(ctx context.Context, d *endpoint.Doc) *contents {
	return &contents{doc: d, open: func(a *endpoint.Attachment) (io.ReadCloser, error) {
		return f.db.attachment(ctx, d, a.Name)
	}}
}

// attachment opens the content of one attachment.
func (d *Database) attachment(ctx context.Context, one *endpoint.Doc, name string) (io.ReadCloser, error) {
	a, err := d.do(ctx, &request{
		method: http.MethodGet, path: docPath(one.ID) + "/" + escape(name),
		query: "rev=" + url.QueryEscape(one.Path.Rev().String()), accept: "*/*", asIs: true,
	})
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, d.refusal(a)
	}
	return a.Body, nil
}
