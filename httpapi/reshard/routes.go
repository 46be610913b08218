package reshard

import (
	"net/http"

	"divan/httpapi/core"
	"divan/storage/fault"
)

// Routes lists the endpoints.
func Routes() []core.Route {
	row := func(path, allow string, m core.Methods) core.Route {
		for _, h := range []*core.Handler{&m.Get, &m.Put, &m.Post, &m.Delete, &m.Any} {
			*h = ifEnabled(*h)
		}
		return core.Route{Table: core.ServerTable, Path: path, Allow: allow, Methods: m}
	}
	return []core.Route{
		row("/_reshard", "GET,HEAD", core.Methods{Get: getSummary}),
		row("/_reshard/state", "GET,HEAD,PUT", core.Methods{Get: getState, Put: putState}),
		row("/_reshard/jobs", "GET,HEAD,POST", core.Methods{Get: getJobs, Post: postJobs}),
		row("/_reshard/jobs/{id}", "GET,HEAD,DELETE", core.Methods{Get: getJob, Delete: deleteJob}),
		row("/_reshard/jobs/{id}/state", "GET,HEAD,PUT", core.Methods{Get: getJobState, Put: putJobState}),
		row("/_reshard/{rest:.+}", "", core.Methods{Any: missing}),
		row("/_cluster/rebalance", "DELETE,GET,HEAD,POST,PUT", core.Methods{
			Get: getRebalance, Post: postRebalance, Put: putRebalance, Delete: deleteRebalance,
		}),
		row("/_node/{node}/_drain", "DELETE,GET,HEAD,POST", core.Methods{Get: getDrain, Post: postDrain, Delete: deleteDrain}),
	}
}

// ifEnabled refuses requests on a node that knows no jobs.
func ifEnabled(h core.Handler) core.Handler {
	if h == nil {
		return nil
	}
	return func(c *core.Call) error {
		if c.API.Deps.Reshard == nil {
			return &core.StatusError{Status: http.StatusNotImplemented, Name: "not_implemented", Reason: "this feature is not yet implemented"}
		}
		return h(c)
	}
}

func missing(*core.Call) error { return fault.New(fault.NotFound, "missing") }
