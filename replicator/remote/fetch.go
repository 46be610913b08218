package remote

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"divan/cluster/docformat"
	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/pause"
)

// Fetch implements endpoint.Source. Documents come by _bulk_get, many at once:
// first without contents, then those whose contents are small with them. The
// others come by a request each, with the contents in their parts. What a broken
// connection has cut off is asked for again; so take is called once more for a document
// whose contents broke off and that take therefore refused.
func (d *Database) Fetch(ctx context.Context, o endpoint.FetchOptions, wanted []endpoint.Wanted, take func(*endpoint.Doc, endpoint.Contents) error) error {
	f := &fetch{db: d, whole: o.WholeAttachments, take: take, refused: o.Refused, wanted: wanted}
	if !o.NoBulkGet && len(wanted) > 0 && !d.noBulkGet.Load() {
		if err := f.persist(ctx, f.bulk); err != nil {
			return err
		}
		if len(f.small) > 0 {
			f.wanted, f.small, f.done, f.inline = f.small, nil, nil, true
			if err := f.persist(ctx, f.bulk); err != nil {
				return err
			}
		}
		f.wanted = append(f.wanted, f.alone...)
	}
	return f.each(ctx)
}

// fetch is one call of Fetch.
type fetch struct {
	db    *Database
	whole bool // contents come even for attachments that the target has
	take  func(*endpoint.Doc, endpoint.Contents) error
	// refused is told of what no target would take; it may be nil.
	refused func(id string, rev doc.Rev, err error) error

	wanted []endpoint.Wanted // still to be fetched
	inline bool              // contents come with _bulk_get
	small  []endpoint.Wanted // to be fetched in that way
	alone  []endpoint.Wanted // to be fetched one by one
	// done are the revisions that have been taken or put aside, by id; latest
	// may give one twice, and so may another attempt.
	done   map[string][]doc.Rev
	failed error // what take or refused returned
	given  int   // documents that were taken
}

// persist calls read until it has read an answer to its end.
func (f *fetch) persist(ctx context.Context, read func(context.Context) error) error {
	for broken := 0; ; broken++ {
		before := f.given
		err := read(ctx)
		if f.given > before {
			broken = 0
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case f.failed != nil:
			return f.failed
		case !errors.Is(err, errBroken):
			return err
		case broken >= f.db.client.options.Retries:
			return unread("the documents of "+f.db.client.url, err)
		}
		if err := pause.For(ctx, min(retryFirst<<min(broken, 20), retryMost)); err != nil {
			return err
		}
	}
}

// errBroken marks an answer that broke off, or is none.
var errBroken = errors.New("the answer broke off")

// broken marks an error as one of the answer.
func broken(err error) error {
	if err == nil {
		return nil
	}
	err = short(err)
	return fault.Wrap(fault.Unavailable, cause(err), errors.Join(errBroken, err))
}

// give hands a document to the taker.
func (f *fetch) give(d *endpoint.Doc, c *contents) error {
	var err error
	switch {
	case c == nil:
		err = f.take(d, nil)
	case isSmall(d):
		if err = c.load(); err == nil {
			err = f.take(d, nil)
		}
	default:
		err = f.take(d, c)
	}
	if err != nil && c != nil && c.err != nil {
		return c.err // it is this side's fault, and worth another attempt
	}
	f.failed = err
	if err == nil {
		f.given++
		f.mark(d.ID, d.Path.Rev())
	}
	return err
}

// mark notes that a revision is done with.
func (f *fetch) mark(id string, rev doc.Rev) {
	if f.done == nil {
		f.done = make(map[string][]doc.Rev, len(f.wanted))
	}
	f.done[id] = append(f.done[id], rev)
}

// without returns the revisions of a document that are not done with.
func (f *fetch) without(id string, revs []doc.Rev) []doc.Rev {
	done := f.done[id]
	if len(done) == 0 {
		return revs
	}
	return slices.DeleteFunc(slices.Clone(revs), func(r doc.Rev) bool { return slices.Contains(done, r) })
}

// refuse passes over a revision that no target would take.
func (f *fetch) refuse(id string, rev doc.Rev, why error) error {
	f.failed = why
	if f.refused != nil {
		f.failed = f.refused(id, rev, why)
	}
	if f.failed != nil {
		return f.failed
	}
	f.given++
	f.mark(id, rev)
	return nil
}

// malformed passes over a document that is none. The error is why when it does not tell
// which revision it is.
func (f *fetch) malformed(text []byte, w *endpoint.Wanted, why error) error {
	rev, err := doc.ParseRev(textOf(doc.Lookup(text, "_rev")))
	if err != nil && len(w.Revs) == 1 {
		rev, err = w.Revs[0], nil
	}
	switch {
	case err != nil:
		return why
	case slices.Contains(f.done[w.ID], rev):
		return nil
	}
	return f.refuse(w.ID, rev, why)
}

// parse reads a document; nil when it is done with already, or passed over.
func (f *fetch) parse(text []byte, w *endpoint.Wanted) (*endpoint.Doc, error) {
	e, err := doc.ParseEnvelope(text)
	if err != nil {
		return nil, f.malformed(text, w, fault.Wrap(fault.KindOf(err), "document "+w.ID+" of "+f.db.client.url+": "+fault.Reason(err), err))
	}
	d := &endpoint.Doc{ID: e.ID, Path: e.Path(), Deleted: e.Deleted, Body: e.Body}
	if d.ID != w.ID || len(d.Path.IDs) == 0 {
		return nil, broken(errors.New("another document than the one that was asked for"))
	}
	if slices.Contains(f.done[w.ID], d.Path.Rev()) {
		return nil, nil
	}
	if len(e.Atts) > 0 {
		var since []doc.Rev
		if !f.whole {
			since = w.Ancestors
		}
		d.Atts, err = f.db.attachments(&e, d.Path, since)
	}
	return d, err
}

// one takes the revisions of one document, contents included. When one of them is larger
// than it may be, each is asked for by itself, and that one is passed over.
func (f *fetch) one(ctx context.Context, w *endpoint.Wanted) error {
	for most := len(w.Revs); ; {
		revs := f.without(w.ID, w.Revs)
		if len(revs) == 0 {
			return nil
		}
		query, asked := f.openRevs(w, revs[:min(most, len(revs))])
		err := f.open(ctx, w, query)
		switch {
		case errors.Is(err, errLong) && asked > 1:
			most = 1
			continue
		case errors.Is(err, errLong):
			err = f.refuse(w.ID, revs[0], fault.Wrap(fault.DocumentTooLarge, cause(err), err))
		}
		if err != nil {
			return err
		}
		for _, rev := range revs[:asked] { // those that are not there are done with as well
			f.mark(w.ID, rev)
		}
	}
}

// open asks for some revisions of a document.
func (f *fetch) open(ctx context.Context, w *endpoint.Wanted, query string) error {
	a, err := f.db.client.do(ctx, &request{
		method: http.MethodGet, path: docPath(w.ID), query: query, accept: "multipart/mixed",
	})
	if err != nil {
		return err
	}
	if a.status == http.StatusNotFound {
		return f.gone(a)
	}
	if a.status != http.StatusOK {
		return f.db.client.refusal(a)
	}
	contentType := a.header.Get("Content-Type")
	r := revisions{fetch: f, wanted: w, hold: f.db.client.memory.Hold()}
	defer r.hold.Release()
	if parts, partsErr := docformat.NewParts(a.Body, contentType, "multipart/mixed"); partsErr == nil {
		err = r.parts(ctx, parts)
	} else {
		err = r.array(ctx, a.Body)
	}
	closed := a.Body.Close()
	if err != nil {
		return err
	}
	docs := r.bare
	for _, d := range docs {
		if err := f.give(d, f.separately(ctx, d)); err != nil {
			return err
		}
	}
	return broken(closed)
}

// gone tells a document that is not there from a database that is not there.
func (f *fetch) gone(a *answer) error {
	err := f.db.client.refusal(a)
	switch fault.Reason(err) {
	case "no_db_file", "Database does not exist.":
		return endpoint.NoDatabase(f.db.client.url)
	}
	return nil
}
