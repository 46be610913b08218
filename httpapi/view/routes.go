package view

import "divan/httpapi/core"

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
		{Table: core.DocTable, Path: "/_design/{ddoc}/_view/{view}", Allow: rows, Name: "view", Methods: view},
		{Table: core.DocTable, Path: "/_design/{ddoc}/_view/{view}/queries", Allow: post, Name: "view queries", Methods: core.Methods{Post: getQueries}},
		{Table: core.DocTable, Path: "/_design/{ddoc}/_view", Allow: rows, Name: "view"},
		{Table: core.DocTable, Path: "/_design/{ddoc}/_view/{view}/{rest:.+}", Allow: rows, Name: "view"},
		{Table: core.DocTable, Path: "/_design/{ddoc}/_info", Allow: "GET", Name: "view info", Methods: core.Methods{Get: getInfo}},

		{Table: core.DBTable, Path: "/_partition/{partition}/_design/{ddoc}/_view/{view}", Allow: rows, Name: "partition view", Methods: part},
		{
			Table: core.DBTable, Path: "/_partition/{partition}/_design/{ddoc}/_view/{view}/queries", Allow: post,
			Name: "partition view queries", Methods: core.Methods{Post: getPartitionQueries},
		},
		{Table: core.DBTable, Path: "/_compact/{ddoc}", Allow: post, Methods: core.Methods{Post: compact}},
		{Table: core.DBTable, Path: "/_view_cleanup", Allow: post, Methods: core.Methods{Post: cleanup}},
	}
}
