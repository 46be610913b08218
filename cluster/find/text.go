package find

import (
	"errors"

	"divan/cluster/search"
	"divan/cluster/window"
	"divan/shard"
	"divan/shard/query"
	"divan/shard/query/plan"
	shardsearch "divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/fault"
	"divan/storage/memory"
)

// Limits of the reading of a full-text index.
const (
	firstHits = 100    // asked for at once, at least
	mostHits  = 1000   // asked for at once, at most
	mostKnown = 20_000 // ids that are remembered, so that no document comes twice
	// knownBytes is about how many bytes an id in a map takes beside its text.
	knownBytes = 40
)

// textRows are the rows that an index of full text finds: its hits, a page at a time, with
// the documents as they are now, matched here.
type textRows struct {
	rows     *Rows
	searcher *search.Searcher
	query    search.Query
	selector *query.Selector
	work     *query.Work
	window   window.Window

	hits     []shardsearch.Hit // whose documents are not read yet
	ended    bool              // there are no more behind them
	page     []shardsearch.Hit // whose documents are read
	docs     []shard.Row       // of page
	at       int               // the next of docs
	held     int               // bytes of query.Memory that hits and page have
	known    map[string]struct{}
	ids      memory.Steps // of known
	examined uint64

	text, body, position []byte // of the row at hand
}

// openText begins to read an index of full text.
func (f *Finder) openText(r *Rows, def *shardsearch.Definition, m memory.Holder) error {
	p := r.plan
	t := &textRows{
		rows: r, searcher: f.searcher, selector: r.find.Selector.ByType(), known: map[string]struct{}{}, work: query.NewWork(r.ctx, f.o.Heavy),
		window: window.New(mostReread, m), ids: memory.InSteps(m),
		query: search.Query{Definition: def, Memory: m, Request: shardsearch.Request{Query: p.Text.Query, Partition: r.find.Partition}},
	}
	var order []shardsearch.Sort
	for _, s := range p.Text.Sort {
		one := shardsearch.Sort{By: shardsearch.ByString, Field: s.Field, Descending: s.Desc}
		if s.Number {
			one.By = shardsearch.ByNumber
		}
		order = append(order, one)
	}
	var err error
	if t.query.Sort, _, err = shardsearch.Distinct(order); err != nil {
		return r.textError(err)
	}
	if p.After != nil {
		from, err := search.ParseBookmark(string(p.After.Sort))
		if err != nil || from == nil || !t.query.Continue(from) {
			return r.find.InvalidBookmark()
		}
	}
	t.query.Limit = min(max(firstHits, r.skip+r.left), mostHits)
	r.text = t
	return nil
}

// definition returns the definition of an index of full text.
func (x *Indexes) definition(of *plan.Index, partitioned bool) (*shardsearch.Definition, error) {
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
				t.position = search.AppendBookmark(t.position[:0], &search.Place{Position: t.page[at].Position, Asked: t.query.Asked})
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
	ok, err := t.selector.Match(t.work, t.text)
	if !ok || err != nil {
		return false, err
	}
	if len(t.known) < mostKnown {
		t.known[d.ID] = struct{}{}
		err = t.ids.Add(knownBytes + len(d.ID))
	}
	return true, err
}

// read reads the documents of the next hits; more is false when there are none.
func (t *textRows) read() (more bool, err error) {
	if len(t.hits) == 0 {
		if err := t.turn(); err != nil || len(t.hits) == 0 {
			return false, err
		}
	}
	ids := make([]string, min(t.window.Size(), len(t.hits)))
	for i := range ids {
		ids[i] = t.hits[i].ID
	}
	t.at = 0
	if t.docs, err = t.rows.db.Winners(t.rows.ctx, ids); err != nil {
		return false, err
	}
	n, err := t.window.Hold(len(t.docs), func(i int) int { return t.docs[i].Doc.Size() })
	clear(t.docs[n:])
	t.docs = t.docs[:n]
	t.page, t.hits = t.hits[:n], t.hits[n:]
	return true, err
}

// turn asks for the next hits; there are none at the end.
func (t *textRows) turn() error {
	if t.ended {
		return nil
	}
	t.drop()
	result, err := t.searcher.Query(t.rows.ctx, t.rows.db, t.query)
	if err != nil {
		return t.rows.textError(err)
	}
	t.hits, t.query.Asked, t.held = result.Hits, result.Asked, result.Held
	if t.ended = len(t.hits) < t.query.Limit; !t.ended {
		last := t.hits[len(t.hits)-1].Position // without the hits, which are given back
		t.query.After = &last
		t.query.Limit = min(2*t.query.Limit, mostHits)
	}
	return nil
}

// drop gives back the hits.
func (t *textRows) drop() {
	if t.hits, t.page, t.docs = nil, nil, nil; t.held > 0 {
		t.query.Memory.Drop(t.held)
		t.held = 0
	}
}

// close gives back all that is held.
func (t *textRows) close() {
	t.drop()
	t.window.Close()
	t.ids.Reduce(0)
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

// textError gives a refusal of a full-text query the name that Mango has for it. One that has a name, such
// as a refusal of memory, keeps it.
func (r *Rows) textError(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.BadRequest || f.Code != "" {
		return err
	}
	code := "text_search_error"
	if r.plan.Index.Kind == plan.Nouveau {
		code = "nouveau_search_error"
	}
	return &fault.Error{Kind: fault.InvalidSelector, Code: code, Reason: f.Reason}
}
