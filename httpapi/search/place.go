package search

import (
	"divan/cluster"
	"divan/httpapi/core"
	"divan/shard/search"
	"divan/shard/search/syntax"
	"divan/storage/doc"
)

// place is the index that a path names: /{db}/_design/{ddoc}/{kind}/{index}, or the same
// below /{db}/_partition/{partition}.
type place struct {
	ddoc, index string
	partition   string
}

// placeOf reads the path. The error is that of a partition where there is none.
func placeOf(c *core.Call) (place, error) {
	below := c.Path[1:]
	out := place{}
	if below[0] == "_partition" {
		if !c.DB.Meta().Partitioned {
			return out, bad("database is not partitioned")
		}
		if err := cluster.ValidatePartition(below[1]); err != nil {
			return out, err
		}
		out.partition, below = below[1], below[2:]
		if named, ok := c.QueryValue("partition"); ok && named != out.partition {
			return out, bad("Conflicting value for `partition` in query string")
		}
	}
	out.ddoc, out.index = doc.DesignPrefix+below[1], below[3]
	return out, nil
}

// definition returns the index that a path names.
func (p *place) definition(c *core.Call, d syntax.Dialect) (*search.Definition, error) {
	ddoc, err := c.API.Deps.Designs.Get(c.Request.Context(), c.DB, p.ddoc)
	if err != nil {
		return nil, err
	}
	return ddoc.Search(d, p.index, c.DB.Meta().Partitioned)
}
