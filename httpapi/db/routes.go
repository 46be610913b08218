package db

import (
	"divan/cluster/access"
	"divan/httpapi/core"
)

// Routes lists the endpoints of databases, one and all. POST /{db} belongs to
// the documents. The last row takes what no other row of any family does, so
// this family comes last.
func Routes() []core.Route {
	return append(numberRoutes(), []core.Route{
		{Table: core.DBTable, Path: "/", Access: access.Documents, Allow: "DELETE,GET,HEAD,POST", Methods: core.Methods{Get: getDatabase}},
		{Table: core.DBTable, Path: "/", Methods: core.Methods{Put: putDatabase, Delete: deleteDatabase}},
		{Table: core.DBTable, Path: "/_ensure_full_commit", Access: access.Documents, Allow: "POST", Methods: core.Methods{Post: ensureFullCommit}},
		{Table: core.DBTable, Path: "/_compact", Access: access.DBAdmin, Allow: "POST", Methods: core.Methods{Post: compactDatabase}},
		{Table: core.DBTable, Path: "/_sync_shards", Allow: "POST", Methods: core.Methods{Post: syncShards}},
		{Table: core.DBTable, Path: "/_temp_view", Access: access.Contents, Methods: core.Methods{Get: tempView, Any: tempView}},

		{Table: core.DBTable, Path: "/_revs_diff", Access: access.Contents, Allow: "POST", Methods: core.Methods{Post: revsDiff}},
		{Table: core.DBTable, Path: "/_missing_revs", Access: access.Contents, Allow: "POST", Methods: core.Methods{Post: missingRevs}},
		{Table: core.DBTable, Path: "/_purge", Allow: "POST", Methods: core.Methods{Post: purge}},
		{Table: core.DBTable, Path: "/_purged_infos", Access: access.Contents, Allow: "GET", Methods: core.Methods{Get: getPurgedInfos}},

		{Table: core.DBTable, Path: "/_security", Access: access.Documents, Allow: "PUT,GET", Methods: core.Methods{Get: getSecurity}},
		{Table: core.DBTable, Path: "/_security", Access: access.Settings, Methods: core.Methods{Put: putSecurity}},
		{Table: core.DBTable, Path: "/_security/{rest:.*}", Access: access.Contents, Methods: core.Methods{Any: core.NotHere}},
		{Table: core.DBTable, Path: "/_shards", Access: access.Contents, Allow: "GET", Methods: core.Methods{Get: getShards}},
		{Table: core.DBTable, Path: "/_shards/{doc}", Access: access.Contents, Allow: "GET", Methods: core.Methods{Get: getShardOf}},

		{Table: core.ServerTable, Path: "/_all_dbs", Access: access.DatabaseNames, Allow: "GET,HEAD", Methods: core.Methods{Get: getAllDBs}},
		{Table: core.ServerTable, Path: "/_all_dbs/{rest:.*}", Access: access.DatabaseNames, Allow: "GET,HEAD", Methods: core.Methods{Get: core.NotHere}},
		{Table: core.ServerTable, Path: "/_dbs_info", Access: access.DatabaseNames, Allow: "GET,HEAD,POST", Methods: core.Methods{Get: getDBsInfo, Post: postDBsInfo}},
		{Table: core.ServerTable, Path: "/_dbs_info/{rest:.*}", Access: access.DatabaseNames, Allow: "GET,HEAD,POST", Methods: core.Methods{Get: core.NotHere, Post: core.NotHere}},

		{Table: core.DBTable, Path: "/_partition", Access: access.Contents, Methods: core.Methods{Get: noPartition, Any: noPartition}},
		{Table: core.DBTable, Path: "/_partition/{partition}", Access: access.Contents, Allow: "GET", Methods: core.Methods{Get: getPartition}},
		{Table: core.DBTable, Path: "/_partition/{partition}/{rest:.+}", Access: access.Contents, Methods: core.Methods{Get: nothingInPartition, Any: nothingInPartition}},
	}...)
}
