package design

import "divan/httpapi/core"

// Routes lists the endpoints that functions of design documents answer. They stand
// before those of attachments, which take any other path below a design document.
func Routes() []core.Route {
	shows := core.Methods{Any: show}
	updates := core.Methods{Get: noUpdateByGet, Any: update}
	lists := core.Methods{Get: list, Post: list, Options: list}
	rewrites := core.Methods{Any: rewrite}
	return []core.Route{
		{Table: core.DocTable, Path: "/_design/{doc}/_show", Name: "show", Methods: shows},
		{Table: core.DocTable, Path: "/_design/{doc}/_show/{rest:.+}", Name: "show", Methods: shows},
		{Table: core.DocTable, Path: "/_design/{doc}/_list", Allow: "GET,POST,HEAD", Name: "list", Methods: lists},
		{Table: core.DocTable, Path: "/_design/{doc}/_list/{rest:.+}", Allow: "GET,POST,HEAD", Name: "list", Methods: lists},
		{Table: core.DocTable, Path: "/_design/{doc}/_update", Name: "update", Methods: updates},
		{Table: core.DocTable, Path: "/_design/{doc}/_update/{rest:.+}", Name: "update", Methods: updates},
		{Table: core.DocTable, Path: "/_design/{doc}/_rewrite", Name: "rewrite", Methods: rewrites},
		{Table: core.DocTable, Path: "/_design/{doc}/_rewrite/{rest:.+}", Name: "rewrite", Methods: rewrites},
	}
}
