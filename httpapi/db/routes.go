package db

import (
	"divan/httpapi/core"
)

// Routes lists the endpoints of databases, one and all. POST /{db} belongs to
// the documents. The last row takes what no other row of any family does, so
// this family comes last.
func Routes() []core.Route {
	return []core.Route{
		{Table: core.DBTable, Path: "/", Allow: "DELETE,GET,HEAD,POST", Methods: core.Methods{Get: getDatabase, Put: putDatabase, Delete: deleteDatabase}},
		{Table: core.DBTable, Path: "/_ensure_full_commit", Allow: "POST", Methods: core.Methods{Post: ensureFullCommit}},
		{Table: core.DBTable, Path: "/_compact", Allow: "POST", Methods: core.Methods{Post: compactDatabase}},
		{Table: core.DBTable, Path: "/_sync_shards", Allow: "POST", Methods: core.Methods{Post: syncShards}},
		{Table: core.DBTable, Path: "/_temp_view", Methods: core.Methods{Get: tempView, Any: tempView}},

		{Table: core.DBTable, Path: "/_revs_diff", Allow: "POST", Methods: core.Methods{Post: revsDiff}},
		{Table: core.DBTable, Path: "/_missing_revs", Allow: "POST", Methods: core.Methods{Post: missingRevs}},
		{Table: core.DBTable, Path: "/_purge", Allow: "POST", Methods: core.Methods{Post: purge}},
		{Table: core.DBTable, Path: "/_purged_infos", Allow: "GET", Methods: core.Methods{Get: getPurgedInfos}},

		{Table: core.DBTable, Path: "/_security", Allow: "PUT,GET", Methods: core.Methods{Get: getSecurity, Put: putSecurity}},
		{Table: core.DBTable, Path: "/_security/{rest:.*}", Methods: core.Methods{Any: core.NotHere}},
		{Table: core.DBTable, Path: "/_revs_limit", Allow: "PUT,GET", Methods: core.Methods{Get: getRevsLimit, Put: putRevsLimit}},
		{Table: core.DBTable, Path: "/_purged_infos_limit", Allow: "GET,PUT", Methods: core.Methods{Get: getPurgedInfosLimit, Put: putPurgedInfosLimit}},
		{Table: core.DBTable, Path: "/_shards", Allow: "GET", Methods: core.Methods{Get: getShards}},
		{Table: core.DBTable, Path: "/_shards/{doc}", Allow: "GET", Methods: core.Methods{Get: getShardOf}},

		{Table: core.ServerTable, Path: "/_all_dbs", Allow: "GET,HEAD", Methods: core.Methods{Get: getAllDBs}},
		{Table: core.ServerTable, Path: "/_dbs_info", Allow: "GET,HEAD,POST", Methods: core.Methods{Get: getDBsInfo, Post: postDBsInfo}},

		{Table: core.DBTable, Path: "/_partition", Methods: core.Methods{Get: noPartition, Any: noPartition}},
		{Table: core.DBTable, Path: "/_partition/{partition}", Allow: "GET", Methods: core.Methods{Get: getPartition}},
		{Table: core.DBTable, Path: "/_partition/{partition}/{rest:.+}", Methods: core.Methods{Get: nothingInPartition, Any: nothingInPartition}},
	}
}
