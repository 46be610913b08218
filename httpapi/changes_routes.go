package httpapi

// changesRoutes lists the feeds.
func changesRoutes() []route {
	return []route{
		{
			table: dbTable, path: "/_changes", allow: "GET,POST,HEAD", name: "changes",
			methods: methods{get: changes, post: changes},
		},
		{table: serverTable, path: "/_db_updates", allow: "GET", methods: methods{get: getDBUpdates}},
	}
}
