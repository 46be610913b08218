package search

import (
	"divan/cluster/access"
	"divan/httpapi/core"
)

// Routes lists the endpoints. They stand before those of documents, which take every path
// below a design document for the name of an attachment.
func (f *Family) Routes() []core.Route {
	const both, bothOfNouveau = "GET,POST", "GET, POST"
	out := []core.Route{
		{
			Table: core.ServerTable, Path: "/_search_analyze", Allow: both, Name: "search analyze",
			Methods: core.Methods{Get: getSearchAnalyze, Post: postSearchAnalyze},
		},
		{Table: core.ServerTable, Path: "/_nouveau_analyze", Allow: "POST", Name: "nouveau analyze", Methods: core.Methods{Post: nouveauAnalyze}},
		{Table: core.DBTable, Path: "/_search_cleanup", Access: access.Contents, Allow: "POST", Name: "search cleanup", Methods: core.Methods{Post: cleanup}},
		{Table: core.DBTable, Path: "/_nouveau_cleanup", Access: access.Contents, Allow: "POST", Name: "nouveau cleanup", Methods: core.Methods{Post: cleanupJSON}},
	}
	add := func(name, allow, of string, m core.Methods) {
		path := "/_design/{ddoc}/" + name
		part := "/_partition/{partition}" + path
		out = append(out,
			core.Route{Table: core.DocTable, Path: path + "/{index}", Access: access.Contents, Allow: allow, Name: of, Methods: m},
			core.Route{Table: core.DBTable, Path: part + "/{index}", Access: access.Contents, Allow: allow, Name: "partition " + of, Methods: m},
		)
		for _, rest := range []string{"", "/{index}/{rest:.+}"} { // the name of an index is missing, or is not all
			out = append(out,
				core.Route{Table: core.DocTable, Path: path + rest, Access: access.Contents, Name: of, Methods: core.Methods{Any: notRecognized}},
				core.Route{Table: core.DBTable, Path: part + rest, Access: access.Contents, Name: of, Methods: core.Methods{Any: notRecognized}})
		}
	}
	add("_search", both, "search", core.Methods{Get: f.getSearch, Post: f.postSearch})
	add("_search_info", "GET", "search info", core.Methods{Get: f.getSearchInfo})
	add("_search_disk_size", "GET", "search info", core.Methods{Get: f.getSearchDiskSize})
	add("_nouveau", bothOfNouveau, "nouveau", core.Methods{Get: f.getNouveau, Post: f.postNouveau})
	add("_nouveau_info", "GET", "nouveau info", core.Methods{Get: f.getNouveauInfo})
	return out
}

func notRecognized(*core.Call) error { return bad("path not recognized") }
