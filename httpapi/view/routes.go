package view

import (
	"divan/cluster/access"
	"divan/httpapi/core"
)

// Routes lists the endpoints of views. They stand before those of documents, which
// take every path below a design document for the name of an attachment.
func Routes() []core.Route {
	const (
		rows = "GET,POST,HEAD"
		post = "POST"
	)
	view := core.Methods{Get: getRows, Post: getRows}
	part := core.Methods{Get: getPartitionRows, Post: getPartitionRows}
	return []core.Route{
		{Table: core.DocTable, Path: "/_design/{ddoc}/_view/{view}", Access: access.Contents, Allow: rows, Name: "view", Methods: view},
		{Table: core.DocTable, Path: "/_design/{ddoc}/_view/{view}/queries", Access: access.Contents, Allow: post, Name: "view queries", Methods: core.Methods{Post: getQueries}},
		{Table: core.DocTable, Path: "/_design/{ddoc}/_view", Access: access.Contents, Allow: rows, Name: "view"},
		{Table: core.DocTable, Path: "/_design/{ddoc}/_view/{view}/{rest:.+}", Access: access.Contents, Allow: rows, Name: "view"},
		{Table: core.DocTable, Path: "/_design/{ddoc}/_info", Access: access.Contents, Allow: "GET", Name: "view info", Methods: core.Methods{Get: getInfo}},

		{Table: core.DBTable, Path: "/_partition/{partition}/_design/{ddoc}/_view/{view}", Access: access.Contents, Allow: rows, Name: "partition view", Methods: part},
		{
			Table: core.DBTable, Path: "/_partition/{partition}/_design/{ddoc}/_view/{view}/queries", Access: access.Contents, Allow: post,
			Name: "partition view queries", Methods: core.Methods{Post: getPartitionQueries},
		},
		{Table: core.DBTable, Path: "/_compact/{ddoc}", Access: access.DBAdmin, Allow: post, Methods: core.Methods{Post: compact}},
		{Table: core.DBTable, Path: "/_view_cleanup", Access: access.DBAdmin, Allow: post, Methods: core.Methods{Post: cleanup}},
	}
}
