package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"divan/cluster/docformat"
	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
)

// resultsMore is how many results more than there are revisions wanted an answer
// may have: one without end would keep a replication busy for ever.
const resultsMore = 100

// bulk takes what _bulk_get brings, puts documents with contents aside, and those of
// which there is more than there may be, and leaves everything in wanted when the server
// has no such request.
func (f *fetch) bulk(ctx context.Context) error {
	for {
		err := f.bulkOnce(ctx)
		if f.failed != nil || !errors.Is(err, errLong) {
			return err
		}
		if f.leave(); len(f.wanted) == 0 {
			return nil
		}
	}
}

// bulkOnce is one request. errLong: the answer was left where a document is too large.
func (f *fetch) bulkOnce(ctx context.Context) error {
	q := request{
		method: http.MethodPost, path: "_bulk_get", query: "revs=true&latest=true&att_encoding_info=true",
		body: f.bulkBody(),
	}
	if f.inline {
		q.query += "&attachments=true"
	}
	a, err := f.db.client.do(ctx, &q)
	if err != nil {
		return err
	}
	switch {
	case a.status == http.StatusOK:
	case unsupported(a.status), a.status >= http.StatusInternalServerError:
		f.db.noBulkGet.Store(unsupported(a.status))
		f.leave()
		return broken(a.Body.Close())
	default:
		return f.db.client.refusal(a)
	}
	l := list{stream: f.db.client.stream(ctx, a.Body, f.db.maxValue), member: "results", other: func(string, []byte) error { return nil }}
	defer l.close()
	ids := make(map[string]*endpoint.Wanted, len(f.wanted))
	most := resultsMore
	for i := range f.wanted {
		ids[f.wanted[i].ID] = &f.wanted[i]
		most += len(f.wanted[i].Revs)
	}
	for n := 0; ; n++ {
		text, err := l.next()
		if n == most && err == nil {
			err = errors.New("_bulk_get gives more results than were asked for")
		}
		if errors.Is(err, io.EOF) {
			f.wanted = nil
			return broken(a.Body.Close())
		}
		if errors.Is(err, errLong) {
			if refused := f.long(l.leadingID(), ids, err); refused != nil {
				err = refused
			}
			return errors.Join(err, a.Body.Close())
		}
		if err != nil {
			return errors.Join(valueError(err), a.Body.Close())
		}
		if err := f.result(text, ids); err != nil {
			return errors.Join(err, a.Body.Close())
		}
	}
}

// long passes over a revision whose result is too large. Of a document with several it puts
// all aside, of one that is not known everything: asked for one by one, they come but
// for what is too large by itself.
func (f *fetch) long(id string, ids map[string]*endpoint.Wanted, why error) error {
	only := ids[id]
	if only != nil {
		if revs := f.without(id, only.Revs); len(revs) == 1 {
			return f.refuse(id, revs[0], fault.Wrap(fault.DocumentTooLarge, cause(why), why))
		}
	}
	for i := range f.wanted {
		w := &f.wanted[i]
		if only != nil && w != only {
			continue
		}
		for _, rev := range f.without(w.ID, w.Revs) {
			f.alone = f.aside(f.alone, w, rev)
		}
	}
	return nil
}

// leave takes what is done with out of what is wanted.
func (f *fetch) leave() {
	var rest []endpoint.Wanted
	for _, w := range f.wanted {
		if w.Revs = f.without(w.ID, w.Revs); len(w.Revs) > 0 {
			rest = append(rest, w)
		}
	}
	f.wanted = rest
}

// bulkBody is the body of _bulk_get.
func (f *fetch) bulkBody() []byte {
	body := append([]byte(nil), `{"docs":[`...)
	first := len(body)
	for i := range f.wanted {
		w := &f.wanted[i]
		for _, rev := range f.without(w.ID, w.Revs) {
			if len(body) > first {
				body = append(body, ',')
			}
			body = append(body, `{"id":`...)
			body = doc.AppendString(body, w.ID)
			body = append(body, `,"rev":`...)
			body = rev.AppendJSON(body)
			if f.inline && !f.whole && len(w.Ancestors) > 0 {
				body = append(body, `,"atts_since":`...)
				body = docformat.AppendRevs(body, w.Ancestors)
			}
			body = append(body, '}')
		}
	}
	return append(body, "]}"...)
}

// result takes what _bulk_get gives for one entry of the request.
func (f *fetch) result(text []byte, ids map[string]*endpoint.Wanted) error {
	var id string
	var docs []byte
	ok := scanMembers(text, func(name, value []byte) {
		switch string(name) {
		case "id":
			id, _ = doc.Unquote(value)
		case "docs":
			docs = value
		}
	})
	w := ids[id]
	if !ok || w == nil {
		return nil // it was not asked for
	}
	var err error
	if !scanElements(docs, func(value []byte) bool {
		scanMembers(value, func(name, member []byte) {
			switch {
			case err != nil:
			case string(name) == "ok":
				err = f.document(member, w)
			case string(name) == "error":
				f.unread(member, w)
			}
		})
		return err == nil
	}) && err == nil {
		err = broken(errors.New("a result of _bulk_get is malformed"))
	}
	return err
}

// unread puts a revision aside that _bulk_get could not read: asked for by
// itself the server may give it, or say why not.
func (f *fetch) unread(value []byte, w *endpoint.Wanted) {
	name, _ := doc.Unquote(doc.Lookup(value, "error"))
	text, _ := doc.Unquote(doc.Lookup(value, "rev"))
	rev, err := doc.ParseRev(text)
	if name == "not_found" || err != nil || slices.Contains(f.done[w.ID], rev) {
		return
	}
	f.alone = f.aside(f.alone, w, rev)
}

// aside appends a revision to a list for later.
func (f *fetch) aside(later []endpoint.Wanted, w *endpoint.Wanted, rev doc.Rev) []endpoint.Wanted {
	f.mark(w.ID, rev)
	if n := len(later); n > 0 && later[n-1].ID == w.ID {
		later[n-1].Revs = append(later[n-1].Revs, rev)
		return later
	}
	return append(later, endpoint.Wanted{ID: w.ID, Revs: []doc.Rev{rev}, Ancestors: w.Ancestors})
}

// document takes a document whose contents are with it, or puts it aside.
func (f *fetch) document(text []byte, w *endpoint.Wanted) error {
	d, err := f.parse(text, w)
	if err != nil || d == nil {
		return err
	}
	switch {
	case !d.Follows():
		return f.give(d, nil)
	case !f.inline && f.db.inlines(d):
		f.small = f.aside(f.small, w, d.Path.Rev())
	default:
		f.alone = f.aside(f.alone, w, d.Path.Rev())
	}
	return nil
}
