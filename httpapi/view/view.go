package view

import (
	"divan/cluster"
	"divan/cluster/view"
	"divan/httpapi/core"
	"divan/httpapi/listing"
	shardview "divan/shard/view"
	"divan/storage/doc"
	"divan/storage/fault"
)

// place is the view that a path names.
type place struct {
	ddoc, view string
	partition  string // empty: that of the query, or none
}

// placeOf reads a path of the table of documents.
func placeOf(c *core.Call) place { return place{ddoc: c.DocID, view: c.Rest[1]} }

// placeInPartition reads a path below a partition.
func placeInPartition(c *core.Call) (place, error) {
	p := place{partition: c.Path[2], ddoc: doc.DesignPrefix + c.Path[4], view: c.Path[6]}
	if !c.DB.Meta().Partitioned {
		return p, fault.New(fault.BadRequest, "database is not partitioned")
	}
	if err := cluster.ValidatePartition(p.partition); err != nil {
		return p, err
	}
	if name, ok := c.QueryValue("partition"); ok && name != p.partition {
		return p, fault.New(fault.BadRequest, "Conflicting value for `partition` in query string")
	}
	return p, nil
}

// getRows serves GET and POST of /{db}/_design/{ddoc}/_view/{view} (api.md section
// 11).
func getRows(c *core.Call) error { return serveOne(c, placeOf(c)) }

// getPartitionRows is getRows below /{db}/_partition/{name}.
func getPartitionRows(c *core.Call) error {
	p, err := placeInPartition(c)
	if err != nil {
		return err
	}
	return serveOne(c, p)
}

// getQueries serves POST of …/queries: several queries in one request.
func getQueries(c *core.Call) error { return serveQueries(c, placeOf(c)) }

// getPartitionQueries is getQueries below /{db}/_partition/{name}.
func getPartitionQueries(c *core.Call) error {
	p, err := placeInPartition(c)
	if err != nil {
		return err
	}
	return serveQueries(c, p)
}

// serveOne answers one query.
func serveOne(c *core.Call, p place) error {
	c.ForAccount()
	def, err := c.API.Deps.Views.Definition(c.Request.Context(), c.DB, p.ddoc)
	if err != nil {
		return err
	}
	params, inBody, err := listing.Read(c)
	if err != nil {
		return err
	}
	v, err := find(c, def, p, &params)
	if err != nil {
		return err
	}
	a, err := prepare(c, v, &params, inBody)
	if err != nil {
		return err
	}
	rows, err := v.Query(c.Request.Context(), a.query)
	if err != nil {
		return err
	}
	defer rows.Close()
	out := c.Stream("")
	if err := a.write(c, out, rows); err != nil {
		return err
	}
	out.Buf = append(out.Buf, '\n')
	return out.Close()
}

// serveQueries answers several queries, all of which are checked before the first
// row goes out.
func serveQueries(c *core.Call, p place) error {
	c.ForAccount()
	def, err := c.API.Deps.Views.Definition(c.Request.Context(), c.DB, p.ddoc)
	if err != nil {
		return err
	}
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	text, err := c.Body.ReadAll(0)
	if err != nil {
		return err
	}
	defaults, err := listing.ParseQuery(c.Query)
	if err != nil {
		return err
	}
	v, err := find(c, def, p, &defaults)
	if err != nil {
		return err
	}
	var answers []*answer
	err = listing.EachQuery(c, text, func(params *listing.Params) error {
		if p.partition != "" {
			params.Partition, params.HasPartition = p.partition, true
		}
		a, err := prepare(c, v, params, true)
		answers = append(answers, a)
		return err
	})
	if err != nil {
		return err
	}
	out := c.Stream("")
	out.Buf = append(out.Buf, `{"results":[`...)
	for i, a := range answers {
		if i > 0 {
			out.Buf = append(out.Buf, ',')
		}
		out.Buf = append(out.Buf, "\r\n"...)
		rows, err := v.Query(c.Request.Context(), a.query)
		if err != nil {
			return err
		}
		err = a.write(c, out, rows)
		rows.Close()
		if err != nil {
			return err
		}
	}
	out.Buf = append(out.Buf, "\r\n]}\n"...)
	return out.Close()
}

// find returns the view of a path, counts the request, and completes its parameters.
func find(c *core.Call, def *shardview.Definition, p place, params *listing.Params) (*view.View, error) {
	c.API.Stats.ViewReads.Inc()
	if p.partition != "" {
		c.API.Stats.Partitions.View.Inc()
		params.Partition, params.HasPartition = p.partition, true
	} else if params.HasPartition {
		if err := cluster.ValidatePartition(params.Partition); err != nil {
			return nil, err
		}
	}
	return c.API.Deps.Views.View(c.DB, def, p.view)
}
