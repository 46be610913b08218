package node

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"divan/cluster/access"
	"divan/httpapi/core"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Family is the endpoints below /_node/{name}, and those of the cluster that
// ask the nodes: this one or each of them.
type Family struct {
	api      *core.API
	registry *prometheus.Registry
	admins   sync.Mutex // orders deletions of administrators
}

// Routes lists the endpoints. Each row below /_node/{name} looks at the name
// first: this node has the name _local and its own, others answer themselves.
func (n *Family) Routes() []core.Route {
	node := func(path, allow string, m core.Methods) core.Route {
		for _, h := range []*core.Handler{&m.Get, &m.Post, &m.Put, &m.Delete, &m.Any} {
			if *h != nil {
				*h = onNode(*h)
			}
		}
		if m.Any == nil {
			m.Any = onNode(func(*core.Call) error { return &core.MethodError{Allow: allow} })
		}
		return core.Route{Table: core.ServerTable, Path: "/_node/{node}" + path, Allow: allow, Methods: m}
	}
	metrics := func(path string, h core.Handler) core.Route {
		r := node(path, "GET", core.Methods{Get: h})
		r.Access = access.Metrics
		return r
	}
	return append(nodeDocRoutes(node), []core.Route{
		{Table: core.ServerTable, Path: "/_membership", Allow: "GET", Methods: core.Methods{Get: getMembership}},
		{Table: core.ServerTable, Path: "/_active_tasks", Allow: "GET,HEAD", Methods: core.Methods{Get: getActiveTasks}},
		{Table: core.ServerTable, Path: "/_cluster_setup", Allow: "GET,POST", Methods: core.Methods{Get: getClusterSetup, Post: postClusterSetup}},
		{Table: core.ServerTable, Path: "/_node", Methods: core.Methods{Get: noNode, Any: noNode}},
		node("", "GET,HEAD", core.Methods{Get: getNode}),
		node("/_config", "GET", core.Methods{Get: getConfig}),
		node("/_config/_reload", "POST", core.Methods{Post: reloadConfig}),
		node("/_config/{section}", "GET", core.Methods{Get: getConfigSection}),
		node("/_config/{section}/{key}", "GET,PUT,DELETE", core.Methods{Get: getConfigKey, Put: putConfigKey, Delete: n.deleteConfigKey}),
		node("/_settings", "GET", core.Methods{Get: getSettings}),
		metrics("/_stats", getStats),
		metrics("/_stats/{path:.*}", getStats),
		metrics("/_system", getSystem),
		metrics("/_prometheus", n.getPrometheus),
		node("/_versions", "GET", core.Methods{Get: getVersions}),
		node("/_restart", "POST", core.Methods{Post: restartNode}),
		node("/_smoosh/status", "GET", core.Methods{Get: getSmoosh}),
		node("/_lost_shards", "GET,POST", core.Methods{Get: getLostShards, Post: acceptLostShards}),
		node("/_active_tasks", "GET", core.Methods{Get: getNodeTasks}),
		node("/{rest:.+}", "", core.Methods{Get: core.NotHere, Any: core.NotHere}),
	}...)
}

// noNode answers for a path that names no node.
func noNode(*core.Call) error {
	return fault.New(fault.BadRequest, "Incomplete path to _node request")
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

// getNode answers GET /_node/{name}.
func getNode(c *core.Call) error {
	out := doc.AppendString([]byte(`{"name":`), c.API.Deps.Meta.Self())
	return c.Response.SendJSON(http.StatusOK, append(out, '}'))
}

// restartNode answers POST /_node/{name}/_restart, then has the node restart.
func restartNode(c *core.Call) error {
	if err := c.Body.RequireJSON(); err != nil {
		return err
	}
	if c.API.Deps.Restart == nil {
		return fault.New(fault.Unavailable, "This node cannot restart itself.")
	}
	if err := c.Response.SendOK(http.StatusOK); err != nil {
		return err
	}
	c.API.Deps.Restart()
	return nil
}

// getSmoosh answers GET /_node/{name}/_smoosh/status. Copies are compacted by
// their stores in the background, without channels that could be shown.
func getSmoosh(c *core.Call) error {
	return c.Response.SendJSON(http.StatusOK, []byte(`{"channels":{}}`))
}
