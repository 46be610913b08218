package search

import (
	"time"

	"divan/cluster/search"
	"divan/httpapi/core"
	shardsearch "divan/shard/search"
	"divan/shard/search/syntax"
)

// getSearch answers GET /{db}/_design/{ddoc}/_search/{index}.
func (f *Family) getSearch(c *core.Call) error {
	list, err := queryParams(c.Query, f.search)
	if err != nil {
		return err
	}
	return f.answerSearch(c, list)
}

// postSearch answers POST to the same path. Parameters in the URL do not count, but partition
// does; the content type may be any.
func (f *Family) postSearch(c *core.Call) error {
	body, err := c.Body.ReadJSON()
	if err != nil {
		return err
	}
	list, err := bodyParams(body, f.search)
	if err != nil {
		return err
	}
	if named, ok := c.QueryValue("partition"); ok {
		list = append(list, param{"partition", appendString(named), true})
	}
	return f.answerSearch(c, list)
}

func (f *Family) answerSearch(c *core.Call, list []param) error {
	c.ForAccount()
	at, err := placeOf(c)
	if err != nil {
		return err
	}
	p, err := f.searchParamsOf(list)
	if err != nil {
		return err
	}
	partition, err := p.partition(at.partition)
	if err != nil {
		return err
	}
	def, err := at.definition(c, syntax.Search)
	if p.query == nil || err == nil {
		if err := p.check(c, partition, def != nil && def.ByPartition); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	q, err := p.request(def, partition)
	if err != nil {
		return err
	}
	q.Memory = &c.Memory
	began := time.Now()
	out, err := f.searcher.Query(c.Request.Context(), c.DB, q)
	c.API.Stats.CountSearch(&c.API.Stats.FullText.Search, time.Since(began), began)
	if err != nil {
		return err
	}
	return (&searchAnswer{c: c, params: p, result: out}).write()
}

// request makes the query of the parameters.
func (p *searchParams) request(def *shardsearch.Definition, partition string) (search.Query, error) {
	if _, err := syntax.Parse(*p.query, syntax.Search); err != nil {
		return search.Query{}, err
	}
	q := search.Query{Definition: def, Request: shardsearch.Request{
		Stale: p.stale, Query: *p.query, Partition: partition, Limit: *p.limit, IncludeFields: p.fields,
	}}
	var err error
	if q.Sort, p.sort.from, err = shardsearch.Distinct(p.sort.parts); err != nil {
		return q, err
	}
	if p.highlight.Fields != nil {
		q.Highlight = &p.highlight
	}
	if p.groupField != nil {
		q.Group = &shardsearch.Group{Field: *p.groupField, Limit: p.groupLimit}
		q.Group.Sort, _, err = shardsearch.Distinct(p.groupSort)
		return q, err
	}
	q.Counts, q.Ranges, q.Drilldown = p.counts, p.ranges, p.drilldown
	if p.bookmark != nil {
		var from *search.Place
		if from, err = search.ParseBookmark(*p.bookmark); err == nil && !q.Continue(from) {
			err = bad("sort order not compatible with given bookmark")
		}
	}
	return q, err
}
