package httpapi

// dbRoutes lists the endpoints of databases, one and all. POST /{db} belongs to
// the documents. The last row takes what no other row of any family does, so
// this family comes last.
func dbRoutes() []route {
	return []route{
		{table: dbTable, path: "/", allow: "DELETE,GET,HEAD,POST", methods: methods{get: getDatabase, put: putDatabase, del: deleteDatabase}},
		{table: dbTable, path: "/_ensure_full_commit", allow: "POST", methods: methods{post: ensureFullCommit}},
		{table: dbTable, path: "/_compact", allow: "POST", methods: methods{post: compactDatabase}},
		{table: dbTable, path: "/_compact/{ddoc}", allow: "POST", methods: methods{post: compactViews}},
		{table: dbTable, path: "/_view_cleanup", allow: "POST", methods: methods{post: cleanViews}},
		{table: dbTable, path: "/_sync_shards", allow: "POST", methods: methods{post: syncShards}},
		{table: dbTable, path: "/_temp_view", methods: methods{get: tempView, any: tempView}},

		{table: dbTable, path: "/_revs_diff", allow: "POST", methods: methods{post: revsDiff}},
		{table: dbTable, path: "/_missing_revs", allow: "POST", methods: methods{post: missingRevs}},
		{table: dbTable, path: "/_purge", allow: "POST", methods: methods{post: purge}},
		{table: dbTable, path: "/_purged_infos", allow: "GET", methods: methods{get: getPurgedInfos}},

		{table: dbTable, path: "/_security", allow: "PUT,GET", methods: methods{get: getSecurity, put: putSecurity}},
		{table: dbTable, path: "/_security/{rest:.*}", methods: methods{any: notHere}},
		{table: dbTable, path: "/_revs_limit", allow: "PUT,GET", methods: methods{get: getRevsLimit, put: putRevsLimit}},
		{table: dbTable, path: "/_purged_infos_limit", allow: "GET,PUT", methods: methods{get: getPurgedInfosLimit, put: putPurgedInfosLimit}},
		{table: dbTable, path: "/_shards", allow: "GET", methods: methods{get: getShards}},
		{table: dbTable, path: "/_shards/{doc}", allow: "GET", methods: methods{get: getShardOf}},

		{table: serverTable, path: "/_all_dbs", allow: "GET,HEAD", methods: methods{get: getAllDBs}},
		{table: serverTable, path: "/_dbs_info", allow: "GET,HEAD,POST", methods: methods{get: getDBsInfo, post: postDBsInfo}},

		{table: dbTable, path: "/_partition", methods: methods{get: noPartition, any: noPartition}},
		{table: dbTable, path: "/_partition/{partition}", allow: "GET", methods: methods{get: getPartition}},
		{table: dbTable, path: "/_partition/{partition}/{rest:.+}", methods: methods{get: nothingInPartition, any: nothingInPartition}},
	}
}
