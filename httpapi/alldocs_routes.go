package httpapi

// listingRoutes lists the endpoints that list documents.
func listingRoutes() []route {
	const (
		list = "GET,HEAD,POST"
		post = "POST"
	)
	return []route{
		{table: dbTable, path: "/_all_docs", allow: list, name: "all docs", methods: methods{get: allDocs, post: allDocs}},
		{
			table: dbTable, path: "/_design_docs", allow: list, name: "design docs",
			methods: methods{get: designDocs, post: designDocs},
		},
		{
			table: dbTable, path: "/_local_docs", allow: list, name: "local docs",
			methods: methods{get: localDocs, post: localDocs},
		},
		{
			table: dbTable, path: "/_partition/{partition}/_all_docs", allow: list, name: "partition docs",
			methods: methods{get: partitionDocs, post: partitionDocs},
		},
		{table: dbTable, path: "/_all_docs/queries", allow: post, name: "all docs", methods: methods{post: allDocsQueries}},
		{
			table: dbTable, path: "/_design_docs/queries", allow: post, name: "design docs",
			methods: methods{post: designDocsQueries},
		},
		{
			table: dbTable, path: "/_local_docs/queries", allow: post, name: "local docs",
			methods: methods{post: localDocsQueries},
		},
		{
			table: dbTable, path: "/_partition/{partition}/_all_docs/queries", allow: post, name: "partition docs",
			methods: methods{post: partitionDocsQueries},
		},
	}
}
