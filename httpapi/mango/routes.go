package mango

import (
	"divan/cluster/access"
	"divan/cluster/find"
	"divan/httpapi/core"
	"divan/storage/fault"
)

// Family is the endpoints of Mango.
type Family struct{ finder *find.Finder }

// New returns the family.
func New(a *core.API) (*Family, error) {
	finder, err := find.New(find.Options{Config: a.Deps.Config, Designs: a.Deps.Designs, Logger: a.Deps.Logger, Heavy: a.Deps.Heavy})
	if err != nil {
		return nil, err
	}
	return &Family{finder: finder}, nil
}

// Routes lists the endpoints.
func (f *Family) Routes() []core.Route {
	post := func(path, name string, h core.Handler) core.Route {
		return core.Route{Table: core.DBTable, Path: path, Access: access.Contents, Allow: "POST", Name: name, Methods: core.Methods{Post: h}}
	}
	index := core.Methods{Get: f.listIndexes, Post: f.createIndex}
	drop := core.Methods{Delete: f.deleteIndex}
	return []core.Route{
		post("/_find", "find", f.find),
		post("/_explain", "explain", f.explain),
		{Table: core.DBTable, Path: "/_index", Access: access.Contents, Allow: "GET,POST", Name: "index", Methods: index},
		post("/_index/_bulk_delete", "index", f.deleteIndexes),
		{Table: core.DBTable, Path: "/_index/_design/{ddoc}/{type}/{name}", Access: access.Contents, Allow: "DELETE", Name: "index", Methods: drop},
		{Table: core.DBTable, Path: "/_index/{ddoc}/{type}/{name}", Access: access.Contents, Allow: "DELETE", Name: "index", Methods: drop},
		{Table: core.DBTable, Path: "/_index/{rest:.+}", Access: access.Contents, Allow: "DELETE", Name: "index", Methods: core.Methods{Any: core.NotHere}},
		post("/_partition/{partition}/_find", "partition find", f.find),
		post("/_partition/{partition}/_explain", "partition explain", f.explain),
		{Table: core.DBTable, Path: "/_partition/{partition}/_index", Access: access.Contents, Allow: "GET,POST", Name: "partition index", Methods: index},
	}
}

// body returns the JSON body of a request.
func body(c *core.Call) ([]byte, error) {
	if err := c.Body.RequireJSON(); err != nil {
		return nil, err
	}
	return c.Body.ReadJSON()
}

// partition returns the partition in the path; empty: none.
func partition(c *core.Call) (string, error) {
	if len(c.Path) < 3 || c.Path[1] != "_partition" {
		return "", nil
	}
	if !c.DB.Meta().Partitioned {
		return "", fault.New(fault.BadRequest, "database is not partitioned")
	}
	return c.Path[2], nil
}
