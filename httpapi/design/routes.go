package design

import (
	"divan/cluster/access"
	"divan/httpapi/core"
)

// Routes lists the endpoints that functions of design documents answer. They stand
// before those of attachments, which take any other path below a design document.
func Routes() []core.Route {
	shows := core.Methods{Any: show}
	updates := core.Methods{Get: noUpdateByGet, Any: update}
	lists := core.Methods{Get: list, Post: list, Options: list}
	rewrites := core.Methods{Any: rewrite}
	return []core.Route{
		{Table: core.DocTable, Path: "/_design/{doc}/_show", Access: access.Contents, Name: "show", Methods: shows},
		{Table: core.DocTable, Path: "/_design/{doc}/_show/{rest:.+}", Access: access.Contents, Name: "show", Methods: shows},
		{Table: core.DocTable, Path: "/_design/{doc}/_list", Access: access.Contents, Allow: "GET,POST,HEAD", Name: "list", Methods: lists},
		{Table: core.DocTable, Path: "/_design/{doc}/_list/{rest:.+}", Access: access.Contents, Allow: "GET,POST,HEAD", Name: "list", Methods: lists},
		{Table: core.DocTable, Path: "/_design/{doc}/_update", Access: access.Contents, Name: "update", Methods: updates},
		{Table: core.DocTable, Path: "/_design/{doc}/_update/{rest:.+}", Access: access.Contents, Name: "update", Methods: updates},
		{Table: core.DocTable, Path: "/_design/{doc}/_rewrite", Access: access.Contents, Name: "rewrite", Methods: rewrites},
		{Table: core.DocTable, Path: "/_design/{doc}/_rewrite/{rest:.+}", Access: access.Contents, Name: "rewrite", Methods: rewrites},
	}
}
