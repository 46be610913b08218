package httpapi

// documentRoutes lists the endpoints of documents, attachments, bulk
// operations, local documents and feeds.
func documentRoutes() []route {
	const (
		document   = "DELETE,GET,HEAD,POST,PUT,COPY"
		attachment = "DELETE,GET,HEAD,PUT"
		list       = "GET,HEAD,POST"
		post       = "POST"
	)
	doc := methods{get: getDocument, put: putDocument, del: deleteDocument, post: postForm, cp: copyDocument}
	att := methods{get: getAttachment, put: putAttachment, del: deleteAttachment}
	return []route{
		{table: docTable, path: "/{doc}", allow: document, name: "document", methods: doc},
		{table: docTable, path: "/_design/{doc}", allow: document, name: "design document", methods: doc},
		{table: docTable, path: "/_local/{doc}", allow: document, name: "local document", methods: doc},
		{table: docTable, path: "/_design/{doc}/{attachment:.+}", allow: attachment, name: "attachment", methods: att},
		{table: docTable, path: "/_local/{doc}/{attachment:.+}", allow: attachment, name: "attachment", methods: att},
		{table: docTable, path: "/{doc}/{attachment:.+}", allow: attachment, name: "attachment", methods: att},

		{table: dbTable, path: "/", name: "database", methods: methods{post: postDocument}},
		{table: dbTable, path: "/_bulk_docs", allow: post, name: "bulk docs", methods: methods{post: bulkDocs}},
		{table: dbTable, path: "/_bulk_get", allow: post, name: "bulk get", methods: methods{post: bulkGet}},
		{
			table: dbTable, path: "/_changes", allow: "GET,POST,HEAD", name: "changes",
			methods: methods{get: changes, post: changes},
		},
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
