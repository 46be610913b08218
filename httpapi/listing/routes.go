package listing

import (
	"divan/cluster/access"
	"divan/httpapi/core"
)

// Routes lists the endpoints that list documents.
func Routes() []core.Route {
	const (
		list = "GET,HEAD,POST"
		post = "POST"
	)
	return []core.Route{
		{Table: core.DBTable, Path: "/_all_docs", Access: access.AllDocs, Allow: list, Name: "all docs", Methods: core.Methods{Get: allDocs, Post: allDocs}},
		{
			Table: core.DBTable, Path: "/_design_docs", Access: access.Contents, Allow: list, Name: "design docs",
			Methods: core.Methods{Get: designDocs, Post: designDocs},
		},
		{
			Table: core.DBTable, Path: "/_local_docs", Access: access.Contents, Allow: list, Name: "local docs",
			Methods: core.Methods{Get: localDocs, Post: localDocs},
		},
		{
			Table: core.DBTable, Path: "/_partition/{partition}/_all_docs", Access: access.Contents, Allow: list, Name: "partition docs",
			Methods: core.Methods{Get: partitionDocs, Post: partitionDocs},
		},
		{Table: core.DBTable, Path: "/_all_docs/queries", Access: access.AllDocs, Allow: post, Name: "all docs", Methods: core.Methods{Post: allDocsQueries}},
		{
			Table: core.DBTable, Path: "/_design_docs/queries", Access: access.Contents, Allow: post, Name: "design docs",
			Methods: core.Methods{Post: designDocsQueries},
		},
		{
			Table: core.DBTable, Path: "/_local_docs/queries", Access: access.Contents, Allow: post, Name: "local docs",
			Methods: core.Methods{Post: localDocsQueries},
		},
		{
			Table: core.DBTable, Path: "/_partition/{partition}/_all_docs/queries", Access: access.Contents, Allow: post, Name: "partition docs",
			Methods: core.Methods{Post: partitionDocsQueries},
		},
	}
}
