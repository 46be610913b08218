package remote

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"divan/cluster/docformat"
	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/memory"
)

// openRevs is the query string that asks for as many of the revisions as fit
// into an address, and how many those are. Ancestors that do not fit are left
// out, the oldest first: more contents come than would have to.
func (f *fetch) openRevs(w *endpoint.Wanted, revs []doc.Rev) (query string, asked int) {
	space := maxURL - len(f.db.client.url) - len(docPath(w.ID)) - 100
	var since []doc.Rev
	if !f.whole {
		since = slices.Clone(w.Ancestors)
		slices.SortFunc(since, func(a, b doc.Rev) int { return b.Compare(a) })
	}
	known, _ := revsParam(since, space/2, 0)
	list, asked := revsParam(revs, space-len(known), 1)
	return "revs=true&latest=true&att_encoding_info=true&open_revs=" + list + "&atts_since=" + known, asked
}

// revsParam is a list of revisions as a parameter, of those that fit into space
// but of least at any rate.
func revsParam(revs []doc.Rev, space, least int) (string, int) {
	text := "["
	for i, rev := range revs {
		one := string(rev.AppendJSON(nil))
		if i > 0 {
			one = "," + one
		}
		if one = url.QueryEscape(one); i >= least && len(text)+len(one) > space {
			return text + "]", i
		}
		text += one
	}
	return text + "]", len(revs)
}

// revisions are those of one document as an answer has them.
type revisions struct {
	*fetch
	wanted *endpoint.Wanted
	hold   memory.Hold     // of bare
	bare   []*endpoint.Doc // those whose contents should have come with them, but have not
	size   int             // of their texts
}

// parts takes the documents of multipart/mixed.
func (r *revisions) parts(ctx context.Context, parts *docformat.Parts) error {
	for {
		part, err := parts.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(err)
		}
		if err := r.part(ctx, part); err != nil {
			return err
		}
	}
}

func (r *revisions) part(ctx context.Context, part *docformat.Part) error {
	text := r.db.client.memory.Hold()
	defer text.Release()
	read := func(from io.Reader) ([]byte, error) { return readAll(ctx, &text, from, r.db.maxValue) }
	contentType := part.Header.Get("Content-Type")
	if name, _, err := mime.ParseMediaType(contentType); err == nil && name == "multipart/related" {
		return r.related(part, contentType, read)
	}
	value, err := read(part)
	if err != nil {
		return valueError(err)
	}
	d, err := r.plain(value, r.wanted)
	if err != nil || d == nil {
		return err
	}
	return r.later(ctx, d, len(value))
}

// valueError is broken for the error of a value that is read as a whole: it does not help to
// read one again that is too long.
func valueError(err error) error {
	if errors.Is(err, errLong) || errors.Is(err, memory.ErrFull) || errors.Is(err, memory.ErrNever) {
		return err
	}
	return broken(err)
}

// maxRevisions is how much the revisions of one document have, without contents
// that follow, that are held at once, in bytes.
const maxRevisions = 64 << 20

// later keeps a document until its contents have been asked for.
func (r *revisions) later(ctx context.Context, d *endpoint.Doc, size int) error {
	if r.size += size; r.size > maxRevisions {
		return tooLong("what comes of one document", maxRevisions)
	}
	if err := r.hold.Take(ctx, int64(d.Size())); err != nil {
		return endpoint.NoMemory("the revisions of one document", err)
	}
	r.bare = append(r.bare, d)
	return nil
}

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
func (r *revisions) related(part io.Reader, contentType string, read func(io.Reader) ([]byte, error)) error {
	from, text, err := docformat.NewRelatedReader(part, contentType, read)
	if err != nil {
		return valueError(err)
	}
	d, err := r.parse(text, r.wanted)
	if err != nil || d == nil {
		return err
	}
	c := &contents{doc: d, open: func(*endpoint.Attachment) (io.ReadCloser, error) {
		next, err := from.Next(new(doc.AttachmentSpec))
		return io.NopCloser(next), err
	}}
	return r.give(d, c)
}

// array reads the documents of a server that answers JSON. None holds content.
func (r *revisions) array(ctx context.Context, body io.Reader) error {
	l := list{stream: r.db.client.stream(ctx, body, r.db.maxValue)}
	defer l.close()
	for {
		text, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return valueError(err)
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
		d, err := r.parse(one, r.wanted)
		if err != nil {
			return err
		}
		if d != nil {
			if err := r.later(ctx, d, len(text)); err != nil {
				return err
			}
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
	a, err := d.client.do(ctx, &request{
		method: http.MethodGet, path: docPath(one.ID) + "/" + escape(name),
		query: "rev=" + url.QueryEscape(one.Path.Rev().String()), accept: "*/*", asIs: true,
	})
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, d.client.refusal(a)
	}
	return a.Body, nil
}
