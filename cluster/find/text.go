package find

import (
	"errors"

	"divan/cluster/search"
	"divan/cluster/window"
	"divan/shard"
	"divan/shard/query"
	"divan/shard/query/plan"
	index "divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// Limits of the reading of a full-text index.
const (
	firstHits = 100    // asked for at once, at least
	mostHits  = 1000   // asked for at once, at most
	mostKnown = 20_000 // ids that are remembered, so that no document comes twice
)

// textRows are the rows that an index of full text finds: its hits, a page at a time, with
// the documents as they are now, matched here.
type textRows struct {
	rows     *Rows
	searcher *search.Searcher
	query    search.Query
	work     *query.Work
	window   window.Window

	hits     []index.Hit // whose documents are not read yet
	after    *index.Position
	ended    bool        // there are no more behind them
	page     []index.Hit // whose documents are read
	docs     []shard.Row // of page
	at       int         // the next of docs
	known    map[string]struct{}
	examined uint64

	text, body, position []byte // of the row at hand
}

// openText begins to read an index of full text.
func (f *Finder) openText(r *Rows, def *index.Definition) error {
	p := r.plan
	t := &textRows{
		rows: r, searcher: f.searcher, known: map[string]struct{}{}, work: query.NewWork(r.ctx, f.o.Heavy),
		window: window.New(f.o.Config.Load().CouchDB.MaxDocumentSize, mostReread),
		query:  search.Query{Definition: def, Request: index.Request{Query: p.Text.Query, Partition: r.find.Partition}},
	}
	for _, s := range p.Text.Sort {
		one := index.Sort{By: index.ByString, Field: s.Field, Descending: s.Desc}
		if s.Number {
			one.By = index.ByNumber
		}
		t.query.Sort = append(t.query.Sort, one)
	}
	if p.After != nil {
		var err error
		if t.after, err = search.ParseBookmark(string(p.After.Sort)); err != nil || t.after == nil || len(t.after.Order) != max(1, len(t.query.Sort)) {
			return r.find.InvalidBookmark()
		}
	}
	t.query.Limit = min(max(firstHits, r.skip+r.left), mostHits)
	r.text = t
	return nil
}

// definition returns the definition of an index of full text.
func (x *Indexes) definition(of *plan.Index, partitioned bool) (*index.Definition, error) {
	dialect := syntax.Search
	if of.Kind == plan.Nouveau {
		dialect = syntax.Nouveau
	}
	return x.designs[of.Design].Search(dialect, of.Name, partitioned)
}

// next moves to the next document that matches.
func (t *textRows) next(to *row) (bool, error) {
	for {
		for t.at < len(t.docs) {
			at := t.at
			t.at++
			ok, err := t.matches(&t.docs[at])
			if err != nil {
				return false, err
			}
			if ok {
				t.body = t.rows.find.Fields.Append(t.body[:0], t.text)
				t.position = search.AppendBookmark(t.position[:0], &t.page[at].Position)
				*to = row{place{sort: t.position, id: t.docs[at].ID}, t.body}
				return true, nil
			}
		}
		if more, err := t.read(); err != nil || !more {
			return false, err
		}
	}
}

// matches reports whether a document is one of the answer. Its text is in t.text then.
func (t *textRows) matches(d *shard.Row) (bool, error) {
	t.examined++
	if d.Doc == nil || d.Deleted || d.Doc.Deleted { // deleted meanwhile
		return false, nil
	}
	if _, again := t.known[d.ID]; again { // it has moved in the order meanwhile
		return false, nil
	}
	t.text = shard.AppendDoc(t.text[:0], d.Doc)
	ok, err := t.rows.find.Selector.Match(t.work, t.text)
	if ok && len(t.known) < mostKnown {
		t.known[d.ID] = struct{}{}
	}
	return ok, err
}

// read reads the documents of the next hits; more is false when there are none.
func (t *textRows) read() (more bool, err error) {
	if len(t.hits) == 0 {
		if err := t.turn(); err != nil || len(t.hits) == 0 {
			return false, err
		}
	}
	n := min(t.window.Size(), len(t.hits))
	t.page, t.hits = t.hits[:n], t.hits[n:]
	ids := make([]string, n)
	for i := range ids {
		ids[i] = t.page[i].ID
	}
	t.at = 0
	if t.docs, err = t.rows.db.Winners(t.rows.ctx, ids); err != nil {
		return false, err
	}
	size := 0
	for i := range t.docs {
		if d := t.docs[i].Doc; d != nil {
			size += len(d.Body)
		}
	}
	t.window.Read(n, size)
	return true, nil
}

// turn asks for the next hits; there are none at the end.
func (t *textRows) turn() error {
	if t.ended {
		return nil
	}
	t.query.After = t.after
	result, err := t.searcher.Query(t.rows.ctx, t.rows.db, t.query)
	if err != nil {
		return t.rows.textError(err)
	}
	t.hits = result.Hits
	if t.ended = len(t.hits) < t.query.Limit; !t.ended {
		t.after = &t.hits[len(t.hits)-1].Position
		t.query.Limit = min(2*t.query.Limit, mostHits)
	}
	return nil
}

// count reads all there is and returns the number of matches.
func (t *textRows) count() (n int64, err error) {
	var one row
	for {
		ok, err := t.next(&one)
		if err != nil || !ok {
			return n, err
		}
		n++
	}
}

// textError gives a refusal of a full-text query the name that Mango has for it.
func (r *Rows) textError(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.BadRequest {
		return err
	}
	code := "text_search_error"
	if r.plan.Index.Kind == plan.Nouveau {
		code = "nouveau_search_error"
	}
	return &fault.Error{Kind: fault.InvalidSelector, Code: code, Reason: f.Reason}
}
