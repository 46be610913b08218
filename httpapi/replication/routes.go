package replication

import (
	"net/http"

	"divan/cluster/access"
	"divan/httpapi/core"
	"divan/storage/fault"
)

// Routes lists the endpoints.
func Routes() []core.Route {
	server := func(path, allow string, m core.Methods) core.Route {
		return core.Route{Table: core.ServerTable, Path: path, Allow: allow, Methods: m}
	}
	read := func(path string, h core.Handler) core.Route {
		return server(path, "GET,HEAD", core.Methods{Get: h})
	}
	return []core.Route{
		{
			Table: core.ServerTable, Path: "/_replicate", Access: access.Account, Allow: "POST",
			Methods: core.Methods{Get: noBody, Post: postReplicate},
		},
		{
			Table: core.ServerTable, Path: "/_node/{node}/_replicate", Access: access.Account, Allow: "POST",
			Methods: core.Methods{Post: onNode(postNodeReplicate)},
		},
		read("/_scheduler/jobs", getJobs),
		read("/_scheduler/jobs/{id}", getJob),
		read("/_scheduler/docs", getDocs),
		read("/_scheduler/docs/{path:.+}", getDocs),
		server("/_scheduler", "", core.Methods{Any: notFound}),
		server("/_scheduler/{rest:.+}", "", core.Methods{Any: notFound}),
		read("/_node/{node}/_scheduler/jobs", onNode(getNodeJobs)),
		read("/_node/{node}/_scheduler/jobs/{id}", onNode(getNodeJob)),
		read("/_node/{node}/_scheduler/docs/{db}", onNode(getNodeDocs)),
		read("/_node/{node}/_scheduler/docs/{db}/{id}", onNode(getNodeDoc)),
	}
}

// onNode runs h when the path names this node, and else has the node answer
// that it names.
func onNode(h core.Handler) core.Handler {
	return func(c *core.Call) error {
		if name := c.Path[1]; !c.API.AtNode(name) {
			return c.Forward(name)
		}
		return h(c)
	}
}

// noBody answers GET /_replicate.
func noBody(*core.Call) error { return fault.New(fault.BadRequest, "Missing request body") }

// notFound answers for what is no part of _scheduler: without a reason.
func notFound(c *core.Call) error {
	return c.Response.SendJSON(http.StatusNotFound, []byte(`{"error":"not found"}`))
}
