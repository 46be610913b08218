package search

import "divan/httpapi/core"

// Routes lists the endpoints.
func Routes() []core.Route {
	return []core.Route{
		{
			Table: core.ServerTable, Path: "/_search_analyze", Allow: "GET,POST", Name: "search analyze",
			Methods: core.Methods{Get: getSearchAnalyze, Post: postSearchAnalyze},
		},
		{Table: core.ServerTable, Path: "/_nouveau_analyze", Allow: "POST", Name: "nouveau analyze", Methods: core.Methods{Post: nouveauAnalyze}},
	}
}
