package search

import (
	"strconv"
	"time"

	"divan/cluster/search"
	"divan/httpapi/core"
	shardsearch "divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/doc"
)

// getNouveau answers GET /{db}/_design/{ddoc}/_nouveau/{index}.
func (f *Family) getNouveau(c *core.Call) error {
	list, err := queryParams(c.Query, f.nouveau)
	if err != nil {
		return err
	}
	return f.answerNouveau(c, list)
}

// postNouveau answers POST to the same path. Parameters in the URL do not count, but partition
// does.
func (f *Family) postNouveau(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	body, err := c.Body.ReadJSON()
	if err != nil {
		return err
	}
	list, err := bodyParams(body, f.nouveau)
	if err != nil {
		return err
	}
	return f.answerNouveau(c, list)
}

func (f *Family) answerNouveau(c *core.Call, list []param) error {
	c.ForAccount()
	at, err := placeOf(c)
	if err != nil {
		return err
	}
	p, err := f.nouveauParamsOf(list)
	if err != nil {
		return err
	}
	partition := at.partition
	if named, ok := c.QueryValue("partition"); ok { // one in a body is ignored, as in CouchDB
		partition = named
	}
	def, err := at.definition(c, syntax.Nouveau)
	switch {
	case err != nil:
		return err
	case partition != "" && !c.DB.Meta().Partitioned:
		return bad("database is not partitioned")
	}
	if _, err := syntax.Parse(*p.query, syntax.Nouveau); err != nil {
		return err
	}
	q := search.Query{Definition: def, Request: shardsearch.Request{
		Stale: p.stale, Query: *p.query, Partition: partition, Locale: p.locale, Limit: p.limit, Counts: p.counts, Ranges: p.ranges,
	}}
	if q.Sort, p.sort.from, err = shardsearch.Distinct(p.sort.parts); err != nil {
		return err
	}
	if p.bookmark != nil {
		from, err := search.ParseBookmark(*p.bookmark)
		if err == nil && !q.Continue(from) {
			err = search.ErrBookmark()
		}
		if err != nil {
			return err
		}
	}
	q.Memory = &c.Memory
	began := time.Now()
	out, err := f.searcher.Query(c.Request.Context(), c.DB, q)
	c.API.Stats.CountSearch(&c.API.Stats.FullText.Nouveau, time.Since(began), began)
	if err != nil {
		return err
	}
	return (&nouveauAnswer{c: c, params: p, result: out}).write()
}

// nouveauAnswer writes the answer of a query of _nouveau.
type nouveauAnswer struct {
	c      *core.Call
	params *nouveauParams
	result *search.Found
	docs   *documents // nil: without documents
	out    *core.Stream
}

func (a *nouveauAnswer) write() error {
	if a.params.docs {
		a.docs = newDocuments(a.c)
	}
	a.out = a.c.Stream("")
	a.out.Buf = strconv.AppendUint(append(a.out.Buf, `{"total_hits_relation":"EQUAL_TO","total_hits":`...), a.result.Total, 10)
	a.ranges()
	a.out.Buf = append(a.out.Buf, `,"hits":[`...)
	hits := a.result.Hits
	for i := range hits {
		if i > 0 {
			a.out.Buf = append(a.out.Buf, ',')
		}
		if err := a.hit(hits, i); err != nil {
			return err
		}
		if i < len(hits)-1 { // the bookmark is made of the last one
			hits[i].Fields = nil // it is in the answer
		}
	}
	a.out.Buf = append(a.out.Buf, ']')
	a.counts()
	a.out.Buf = append(a.out.Buf, `,"bookmark":"`...)
	a.out.Buf = search.AppendNext(a.out.Buf, a.result, a.params.bookmark)
	a.out.Buf = strconv.AppendInt(append(a.out.Buf, `","update_latency":`...), a.result.Waited.Milliseconds(), 10)
	a.out.Buf = append(a.out.Buf, "}\n"...)
	return a.out.Close()
}

func (a *nouveauAnswer) hit(hits []shardsearch.Hit, i int) error {
	h := &hits[i]
	a.out.Buf = append(a.out.Buf, `{"order":[`...)
	byID := false
	for k := range max(1, len(a.params.sort.parts)) {
		if k > 0 {
			a.out.Buf = append(a.out.Buf, ',')
		}
		by, v := shardsearch.ByScore, &h.Order[0]
		if len(a.params.sort.parts) > 0 {
			by, v = a.params.sort.parts[k].By, &h.Order[a.params.sort.from[k]]
		}
		a.out.Buf = appendTyped(a.out.Buf, by, v)
		if byID = by == shardsearch.ByID; k > 0 { // texts may be long, and many
			if err := a.out.Spill(); err != nil {
				return err
			}
		}
	}
	if !byID {
		a.out.Buf = appendTyped(append(a.out.Buf, ','), shardsearch.ByID, &shardsearch.Value{Text: h.ID})
	}
	a.out.Buf = doc.AppendString(append(a.out.Buf, `],"id":`...), h.ID)
	a.out.Buf = appendFields(append(a.out.Buf, `,"fields":`...), h, false)
	if a.docs != nil {
		if err := a.docs.write(a.out, hits, i); err != nil {
			return err
		}
	}
	a.out.Buf = append(a.out.Buf, '}')
	return a.out.Spill()
}

// appendTyped appends what a hit is ordered by, and of which type that is.
func appendTyped(dst []byte, by shardsearch.SortBy, v *shardsearch.Value) []byte {
	if by == shardsearch.ByField {
		by = v.Kind
	}
	dst = append(dst, `{"value":`...)
	switch {
	case by == shardsearch.ByField || by == shardsearch.ByString && v.Missing:
		return append(dst, `null,"@type":"null"}`...)
	case by == shardsearch.ByString || by == shardsearch.ByID:
		return append(doc.AppendString(dst, v.Text), `,"@type":"string"}`...)
	case by == shardsearch.ByNumber:
		return append(doc.AppendFloat(dst, v.Number), `,"@type":"double"}`...)
	default:
		return append(doc.AppendFloat(dst, v.Number), `,"@type":"float"}`...)
	}
}

// ranges writes the largest top_n of each field.
func (a *nouveauAnswer) ranges() {
	a.out.Buf = append(a.out.Buf, `,"ranges":`...)
	if !a.params.ranged {
		a.out.Buf = append(a.out.Buf, "null"...)
		return
	}
	a.out.Buf = append(a.out.Buf, '{')
	for i, of := range a.params.ranges {
		counts := make([]shardsearch.Count, len(of.Ranges))
		for k, r := range of.Ranges {
			counts[k] = shardsearch.Count{Value: r.Label, Count: a.result.Ranges[i][k]}
		}
		a.largest(i, of.Field, counts)
	}
	a.out.Buf = append(a.out.Buf, '}')
}

func (a *nouveauAnswer) counts() {
	a.out.Buf = append(a.out.Buf, `,"counts":`...)
	if !a.params.counted {
		a.out.Buf = append(a.out.Buf, "null"...)
		return
	}
	a.out.Buf = append(a.out.Buf, '{')
	for i, field := range a.params.counts {
		a.largest(i, field, a.result.Counts[i].Values)
	}
	a.out.Buf = append(a.out.Buf, '}')
}

// largest writes the largest top_n counts of a field, of equal ones the first in their order.
func (a *nouveauAnswer) largest(i int, field string, counts []shardsearch.Count) {
	dst := a.out.Buf
	if i > 0 {
		dst = append(dst, ',')
	}
	dst = append(doc.AppendString(dst, field), ":{"...)
	for k, c := range search.Largest(counts, a.params.topN) {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(append(doc.AppendString(dst, c.Value), ':'), c.Count, 10)
	}
	a.out.Buf = append(dst, '}')
}
