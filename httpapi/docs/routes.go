package docs

import (
	"divan/cluster/access"
	"divan/httpapi/core"
)

// Routes lists the endpoints of documents, their attachments and of many
// documents at once.
func Routes() []core.Route {
	const (
		document   = "DELETE,GET,HEAD,POST,PUT,COPY"
		attachment = "DELETE,GET,HEAD,PUT"
		post       = "POST"
	)
	doc := core.Methods{Get: getDocument, Put: putDocument, Delete: deleteDocument, Post: postForm, Copy: copyDocument}
	att := core.Methods{Get: getAttachment, Put: putAttachment, Delete: deleteAttachment}
	return []core.Route{
		{Table: core.DocTable, Path: "/{doc}", Access: access.Documents, Allow: document, Name: "document", Methods: doc},
		{Table: core.DocTable, Path: "/_design/{doc}", Access: access.Documents, Allow: document, Name: "design document", Methods: doc},
		{Table: core.DocTable, Path: "/_local/{doc}", Access: access.Contents, Allow: document, Name: "local document", Methods: doc},
		{Table: core.DocTable, Path: "/_design/{doc}/{attachment:.+}", Access: access.Contents, Allow: attachment, Name: "attachment", Methods: att},
		{Table: core.DocTable, Path: "/_local/{doc}/{attachment:.+}", Access: access.Contents, Allow: attachment, Name: "attachment", Methods: att},
		{Table: core.DocTable, Path: "/{doc}/{attachment:.+}", Access: access.Documents, Allow: attachment, Name: "attachment", Methods: att},

		{Table: core.DBTable, Path: "/", Access: access.Documents, Name: "database", Methods: core.Methods{Post: postDocument}},
		{Table: core.DBTable, Path: "/_bulk_docs", Access: access.Documents, Allow: post, Name: "bulk docs", Methods: core.Methods{Post: bulkDocs}},
		{Table: core.DBTable, Path: "/_bulk_get", Access: access.Documents, Allow: post, Name: "bulk get", Methods: core.Methods{Post: bulkGet}},
	}
}
