package server

import (
	"net/http"

	"divan/httpapi/core"
)

// The endpoints of CouchDB that this version does not have. They say so in words:
// to a database that does not exist, or to an attachment, a client would have
// another answer.
const noSearch = "Full-text search is not part of this version."

// AbsentRoutes lists them. They stand before those of documents, which take every
// path below a design document for the name of an attachment.
func AbsentRoutes() []core.Route {
	var out []core.Route
	missing := &core.StatusError{Status: http.StatusNotImplemented, Name: "not_implemented", Reason: noSearch}
	add := func(table core.Table, paths ...string) {
		answer := core.Methods{Any: func(*core.Call) error { return missing }}
		for _, path := range paths {
			out = append(out,
				core.Route{Table: table, Path: path, Name: "absent", Methods: answer},
				core.Route{Table: table, Path: path + "/{rest:.+}", Name: "absent", Methods: answer})
		}
	}
	add(core.DBTable, "/_search_cleanup", "/_nouveau_cleanup")
	for _, name := range []string{"_search", "_search_info", "_search_disk_size", "_nouveau", "_nouveau_info"} {
		add(core.DocTable, "/_design/{ddoc}/"+name)
		add(core.DBTable, "/_partition/{partition}/_design/{ddoc}/"+name)
	}
	return out
}
