package httpapi

// documentRoutes lists the endpoints of documents, their attachments and of many
// documents at once.
func documentRoutes() []route {
	const (
		document   = "DELETE,GET,HEAD,POST,PUT,COPY"
		attachment = "DELETE,GET,HEAD,PUT"
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
	}
}
